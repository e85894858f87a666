import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addEvents } from '../../../test/support/event-reader.ts';
import { addDeadLetter, unserved } from '../../../test/support/stored-relays.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';
import { toTimestamp } from '../../base/clock.ts';

const path = '/events/dead-letters';
const other = 'entity-events/broker';
const audit = 'audit-events/broker';

let app: TestApp;
let admin: Client;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
  await addEvents(admin, 3);
});
afterAll(() => app.close());

const sequencesOf = ({ body }: { body: Json }) => body.deadLetters.map(({ sequence }: Json) => sequence);

describe('GET /events/dead-letters', () => {
  it('200: what was set aside, with its event, by way out and then in order (EVENT-23)', async () => {
    expect((await admin.get(path)).body).toMatchObject({ deadLetters: [], pagination: { totalCount: 0 } });
    const second = await addDeadLetter(app, 4);
    const first = await addDeadLetter(app, 2);
    const asked = await addDeadLetter(app, 3, { relay: other, requeuedAt: app.clock.now() });
    const { status, body } = await admin.get(path);
    const { events } = (await admin.get('/events')).body;
    const time = toTimestamp(app.clock.now());
    const common = { attempts: 5, lastError: 'it was refused', setAsideAt: time, requeuedAt: null };
    expect([status, body.deadLetters]).toEqual([
      200,
      [
        { ...common, id: asked, relay: other, sequence: 3, requeuedAt: time, event: events[2] },
        { ...common, id: first, relay: unserved, sequence: 2, event: events[1] },
        { ...common, id: second, relay: unserved, sequence: 4, event: events[3] },
      ],
    ]);
  });

  it('200: only those of one subscription, page by page (EVENT-23)', async () => {
    expect(sequencesOf(await admin.get(`${path}?relay=${other}`))).toEqual([3]);
    expect(sequencesOf(await admin.get(`${path}?relay=nothing`))).toEqual([]);
    const page = await admin.get(`${path}?limit=2&page=2`);
    expect(sequencesOf(page)).toEqual([4]);
    expect(page.body.pagination).toMatchObject({ page: 2, totalCount: 3, totalPages: 2, hasNextPage: false });
  });

  it('200: a record of the audit log is told from an event with the same number (EVENT-23, AUDIT-1)', async () => {
    await addDeadLetter(app, 1, { relay: audit });
    await addDeadLetter(app, 1);
    const { deadLetters } = (await admin.get(path)).body;
    const types = deadLetters
      .filter(({ sequence }: Json) => sequence === 1)
      .map(({ relay, event }: Json) => [relay, event.eventType]);
    const [first] = await app.audit();
    expect(types).toEqual([
      [audit, first.action],
      [unserved, 'orgCreated'],
    ]);
  });

  it('200: an event that is no longer kept is not there, and its letter is (EVENT-20, EVENT-23)', async () => {
    await app.services.db.transaction((tx) => tx.deleteFrom('outbox').where('sequence', '<=', 1).execute());
    const { deadLetters } = (await admin.get(`${path}?relay=${unserved}`)).body;
    expect(deadLetters.map(({ sequence, event }: Json) => [sequence, event?.sequence ?? null])).toEqual([
      [1, null],
      [2, 2],
      [4, 4],
    ]);
  });

  it.each(['page=0', 'limit=101', 'limit=x', `relay=${'x'.repeat(201)}`])('400: %s', async (query) => {
    expect((await admin.get(`${path}?${query}`)).status).toBe(400);
  });

  it('401 and 403: for administrators, by a token with org:admin (EVENT-15, EVENT-23)', async () => {
    const member = await app.member(admin, 'grace@example.com');
    const callers = [
      app.anonymous,
      app.service(['EVENTS_READ']),
      member,
      await admin.token({ scopes: ['org:read'] }),
      await admin.token({ scopes: ['org:admin'] }),
    ];
    const statuses = await Promise.all(callers.map(async (caller) => (await caller.get(path)).status));
    expect(statuses).toEqual([401, 401, 403, 403, 200]);
    expect((await member.get(`${path}?page=0`)).status).toBe(403);
  });
});
