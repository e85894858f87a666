import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { addEvents } from '../../../test/support/event-reader.ts';
import { secondConnection } from '../../../test/support/second-connection.ts';
import { registerService } from '../../../test/support/service-clients.ts';
import { actAhead } from '../../../test/support/statement-watch.ts';
import type { StoreConnection } from '../../../test/support/store-connection.ts';
import { type Client, type Json, TestApp, type TestResponse } from '../../../test/support/test-app.ts';

const users = 13;
/** orgCreated and the first userAdded come before. */
const newest = users + 2;

let app: TestApp;
let admin: Client;
let reader: Client;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
  await addEvents(admin, users);
  reader = app.service(['EVENTS_READ']);
});
afterAll(() => app.close());

const idsOf = (body: Json): number[] => body.events.map(({ sequence }: Json) => sequence);
const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, place) => first + place);

describe('GET /events: pages', () => {
  it('200: envelopes from the oldest kept on, in order, and where to go on (EVENT-1, EVENT-11, ERR-9)', async () => {
    const { status, body, headers } = await admin.get('/events');
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    const stored = (await app.events()).map(
      ({ event_type: eventType, occurred_at: timestamp, payload, id, sequence }) => ({
        eventType,
        timestamp,
        payload,
        id,
        sequence,
      }),
    );
    expect(body).toEqual({ events: stored, nextAfter: newest });
    expect(body.events[0]).toMatchObject({ eventType: 'orgCreated', timestamp: app.clock.now(), sequence: 1 });
  });

  it('200: only what comes after a sequence, at most so many (EVENT-11)', async () => {
    const { body } = await admin.get('/events?after=3&limit=4');
    expect([idsOf(body), body.nextAfter]).toEqual([[4, 5, 6, 7], 7]);
    expect(idsOf((await admin.get('/events?after=0&limit=1')).body)).toEqual([1]);
  });

  it('200: page after page, whatever their size, everything comes once and nothing twice (EVENT-11)', async () => {
    for (const limit of [1, 2, 7, 1_000]) {
      const seen: number[] = [];
      let after = 0;
      for (;;) {
        const { body } = await admin.get(`/events?after=${after}&limit=${limit}`);
        seen.push(...idsOf(body));
        after = body.nextAfter;
        if (body.events.length === 0) break;
      }
      expect([limit, seen, after]).toEqual([limit, upTo(newest), newest]);
    }
  });

  it('200: at the end there is nothing, and the cursor stays; one beyond it comes back to it (EVENT-11)', async () => {
    expect((await admin.get(`/events?after=${newest}`)).body).toEqual({ events: [], nextAfter: newest });
    // A log that was restored to an earlier state has these numbers again, and its followers must not miss them.
    expect((await admin.get('/events?after=999999999999999')).body).toEqual({ events: [], nextAfter: newest });
  });

  it('200: a page has 100 where nothing is said, and 1,000 at most (EVENT-11)', async () => {
    const other = await TestApp.start();
    const boss = await other.setUp();
    const { db, newId, clock } = other.services;
    const { org_id } = await db.read.selectFrom('outbox').selectAll().limit(1).executeTakeFirstOrThrow();
    await db.transaction(async (tx) => {
      for (const sequence of upTo(1_103, 3)) {
        const row = { sequence, id: newId(), org_id, event_type: 'userAdded', occurred_at: clock.now(), payload: '{}' };
        await tx.insertInto('outbox').values(row).execute();
      }
      await tx.updateTable('counters').set({ value: 1_103 }).where('name', '=', 'event').execute();
    });
    expect(idsOf((await boss.get('/events')).body)).toEqual(upTo(100));
    expect(idsOf((await boss.get('/events?limit=1000&after=100')).body)).toEqual(upTo(1_100, 101));
    expect((await boss.get('/events?limit=1001')).status).toBe(400);
    await other.close();
  });

  it.each([
    ['after', 'x'],
    ['after', '-1'],
    ['after', '1.5'],
    ['after', '01'],
    ['after', '+1'],
    ['after', ' 1'],
    ['after', '1e3'],
    ['after', ''],
    ['after', '9999999999999999'],
    ['limit', '0'],
    ['limit', '1001'],
    ['limit', 'all'],
    ['limit', ''],
  ])('400: %s=%s (EVENT-11)', async (name, value) => {
    const { status, body } = await admin.get(`/events?${name}=${encodeURIComponent(value)}`);
    expect([status, body.error.code, body.error.details[0].field]).toEqual([400, 'VALIDATION_ERROR', `query.${name}`]);
  });

  it.each(['x', '-1', '1,2', '9999999999999999'])('400: Last-Event-ID: %s', async (given) => {
    const { status, body } = await admin.get('/events', { headers: { 'last-event-id': given } });
    expect([status, body.error.details[0].field]).toEqual([400, 'headers.last-event-id']);
  });

  it('200: a page goes by `after` alone, whatever Last-Event-ID says (EVENT-11)', async () => {
    for (const given of ['9', '']) {
      const { body } = await admin.get('/events?after=12', { headers: { 'last-event-id': given } });
      expect(idsOf(body)).toEqual(upTo(newest, 13));
    }
  });

  it('200: HEAD answers as GET, without a body', async () => {
    const { status, text, headers } = await admin.call('HEAD', '/events');
    expect([status, text, headers.get('content-type')]).toEqual([200, '', 'application/json; charset=utf-8']);
  });

  it('200: what is told of people, groups, tokens and settings is there or not as the rules say (EVENT-19)', async () => {
    const { _id: groupId } = (await admin.post('/userGroups', { name: 'Group', type: 'custom' })).body;
    await admin.post('/userGroups/add-users', { userIds: [admin.userId], groupIds: [groupId] });
    await admin.delete(`/userGroups/${groupId}`);
    const { team } = (await admin.post('/teams', { name: 'Team' })).body;
    await admin.delete(`/teams/${team.id}`);
    const token = await admin.token();
    await admin.delete(`/personal-access-tokens/${token.tokenId}`);
    await admin.put('/settings/smtp', { host: 'smtp.example.com', from: 'no-reply@example.com' });
    await admin.delete('/settings/smtp');
    const session = await app.signIn('ada@example.com');
    await session.post('/userAccount/logout/manual', {});
    await registerService(admin);
    expect((await admin.get(`/events?after=${newest}`)).body).toEqual({ events: [], nextAfter: newest });
    const actions = (await app.audit()).map(({ action }) => action.split('.')[0]);
    expect([...new Set(actions)]).toEqual(expect.arrayContaining(['group', 'team', 'token', 'settings', 'service']));
  });
});

describe('GET /events: what is no longer kept', () => {
  let short: TestApp;
  let boss: Client;

  beforeAll(async () => {
    short = await TestApp.start();
    boss = await short.setUp();
    await addEvents(boss, 8);
    await short.services.db.transaction((tx) => tx.deleteFrom('outbox').where('sequence', '<=', 6).execute());
  });
  afterAll(() => short.close());

  it('410: an `after` whose next event is gone, naming the oldest (EVENT-12)', async () => {
    for (const after of [0, 1, 5]) {
      const { status, body } = await boss.get(`/events?after=${after}`);
      expect([status, body.error.code, body.oldest]).toEqual([410, 'GONE', 7]);
      expect(body.message).toBe('Events before 7 are no longer kept: continue with after=6');
    }
  });

  it('200: what it says to go on with works, and so does asking for the oldest without one (EVENT-12)', async () => {
    expect(idsOf((await boss.get('/events?after=6')).body)).toEqual([7, 8, 9, 10]);
    expect(idsOf((await boss.get('/events')).body)).toEqual([7, 8, 9, 10]);
  });

  it('200 and 410: where nothing is kept at all, the end is where it was (EVENT-12)', async () => {
    const rows = await short.services.db.read.selectFrom('outbox').selectAll().execute();
    await short.services.db.transaction((tx) => tx.deleteFrom('outbox').execute());
    expect((await boss.get('/events?after=9')).body).toMatchObject({ oldest: 11 });
    expect((await boss.get('/events?after=10')).body).toEqual({ events: [], nextAfter: 10 });
    expect((await boss.get('/events')).body).toEqual({ events: [], nextAfter: 10 });
    await short.services.db.transaction((tx) => tx.insertInto('outbox').values(rows).execute());
  });

  it('200: before there is an organization there is nothing, and the first event comes after 0 (EVENT-11)', async () => {
    const empty = await TestApp.start();
    const service = empty.service(['EVENTS_READ']);
    expect((await service.get('/events')).body).toEqual({ events: [], nextAfter: 0 });
    await empty.setUp();
    expect(idsOf((await service.get('/events?after=0')).body)).toEqual([1, 2]);
    await empty.close();
  });
});

describe('GET /events: who may (EVENT-15)', () => {
  it('401: no one, and anyone who shows what is no credential', async () => {
    expect(await app.anonymous.get('/events')).toMatchObject({
      status: 401,
      body: { error: { code: 'UNAUTHORIZED' } },
    });
    for (const credential of [
      'lkpat_bad',
      'a.b.c',
      reader.credential?.slice(0, -1) ?? '',
      `lkpat_${reader.credential}`,
    ]) {
      const { status, body } = await app.with(credential).get('/events');
      expect([credential, status, body.error.code]).toEqual([credential, 401, 'TOKEN_INVALID']);
    }
  });

  it('403: a member, by session and by a token with every scope', async () => {
    const member = await app.member(admin, 'grace@example.com');
    for (const caller of [member, await member.token()]) {
      const { status, body } = await caller.get('/events');
      expect([status, body.error.code]).toEqual([403, 'ADMIN_REQUIRED']);
    }
  });

  it('200 and 403: a token of an administrator needs org:admin, and nothing else', async () => {
    const { status, body, headers } = await (await admin.token({ scopes: ['org:read', 'org:write'] })).get('/events');
    expect([status, body.message]).toEqual([403, 'Insufficient scope. Required: org:admin']);
    expect(headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope", scope="org:admin"');
    expect((await (await admin.token({ scopes: ['org:admin'] })).get('/events')).status).toBe(200);
  });

  it('200 and 403: a scoped token needs EVENTS_READ, self-signed or issued, and sees the same (SERVICE-3, SERVICE-13)', async () => {
    expect((await reader.get('/events')).body).toEqual((await admin.get('/events')).body);
    for (const scopes of [
      [],
      ['USER_LOOKUP', 'FETCH_CONFIG', 'TOKEN_INTROSPECT'],
      ['org:admin'],
      ['events_read'],
      'EVENTS_READ',
    ]) {
      const { status, body } = await app.service(scopes).get('/events');
      expect([scopes, status, body.message]).toEqual([scopes, 403, 'Insufficient scope. Required: EVENTS_READ']);
    }
  });

  it('401: a scoped token on every other route of events', async () => {
    const others = [
      ['GET', '/events/dead-letters'],
      ['POST', '/events/dead-letters/requeue'],
      ['DELETE', `/events/dead-letters/${'a'.repeat(24)}`],
      ['GET', '/events/relays'],
      ['POST', '/events/relays/replay'],
    ] as const;
    for (const [method, path] of others) {
      const { status, body } = await reader.call(method, path);
      expect([method, path, status, body.error.code]).toEqual([method, path, 401, 'TOKEN_INVALID']);
    }
  });

  it('checks the credential first, then who it is, then the input, then what is kept (HTTP-2)', async () => {
    const wrong = '/events?after=x&limit=0';
    const headers = { 'last-event-id': 'x' };
    const member = await app.signIn('grace@example.com');
    expect((await app.anonymous.get(wrong, { headers })).status).toBe(401);
    expect((await member.get(wrong, { headers })).status).toBe(403);
    expect((await app.service().get(wrong, { headers })).status).toBe(403);
    expect((await admin.get(wrong, { headers })).status).toBe(400);
    expect((await reader.get(wrong, { headers })).status).toBe(400);
    expect((await app.anonymous.post(wrong)).status).toBe(405);
  });

  it('429: bad credentials of one network, and good ones of either kind go on (T8)', async () => {
    const limited = await TestApp.start({ RATE_LIMIT: 'on' });
    const boss = await limited.setUp();
    const service = limited.service(['EVENTS_READ']);
    let [status, tries] = [401, 0];
    while (status === 401 && tries < 1_000) {
      ({ status } = await limited.with('lkpat_bad').get('/events'));
      tries += 1;
    }
    expect([status, tries < 1_000]).toEqual([429, true]);
    expect([(await boss.get('/events')).status, (await service.get('/events')).status]).toEqual([200, 200]);
    await limited.close();
  });
});

describe('GET /events: what another process does between two statements', () => {
  let racing: TestApp;
  let boss: Client;
  let store: StoreConnection;
  const statements = /"(outbox|counters)"/;

  beforeEach(async () => {
    racing = await TestApp.start();
    boss = await racing.setUp();
    await addEvents(boss, 5);
    store = secondConnection(racing);
  });
  afterEach(async () => {
    store.close();
    await racing.close();
  });

  /** The answers to a request, each with something done ahead of another one of its statements. */
  async function aheadOfEach(path: string, act: () => void, undo: () => void): Promise<TestResponse[]> {
    const responses: TestResponse[] = [];
    for (let number = 1; ; number += 1) {
      const stop = actAhead(statements, number, act);
      const response = await boss.get(path);
      if (!stop()) return responses;
      responses.push(response);
      undo();
    }
  }

  it('410: what is removed meanwhile is told, and never passed over in silence (EVENT-12, EVENT-20)', async () => {
    const rows = store.prepare('SELECT * FROM outbox WHERE sequence <= 4').all();
    const back = store.prepare(
      'INSERT INTO outbox VALUES (:sequence, :id, :org_id, :event_type, :occurred_at, :payload)',
    );
    const remove = () => store.exec('DELETE FROM outbox WHERE sequence <= 4');
    const undo = () => {
      for (const row of rows) back.run(row);
    };
    const responses = await aheadOfEach('/events?after=0&limit=3', remove, undo);
    expect(responses.length).toBeGreaterThan(1);
    for (const { status, body } of responses) {
      expect([
        [200, [1, 2, 3]],
        [410, 5],
      ]).toContainEqual([status, body.oldest ?? idsOf(body)]);
    }
  });

  it.each(['', '?after=7'])(
    '200: what is written meanwhile to an empty log is not passed over: /events%s (EVENT-9, EVENT-12)',
    async (query) => {
      const row = store.prepare('SELECT * FROM outbox WHERE sequence = 7').get();
      store.exec('DELETE FROM outbox');
      const write = () => {
        store.exec("UPDATE counters SET value = 8 WHERE name = 'event'");
        store
          .prepare(
            "INSERT INTO outbox VALUES (8, 'ffffffffffffffffffffffff', :org_id, :event_type, :occurred_at, :payload)",
          )
          .run(row);
      };
      const undo = () => store.exec("DELETE FROM outbox; UPDATE counters SET value = 7 WHERE name = 'event'");
      const responses = await aheadOfEach(`/events${query}`, write, undo);
      expect(responses.length).toBeGreaterThan(1);
      for (const { status, body } of responses) {
        expect([
          [200, [], 7],
          [200, [8], 8],
        ]).toContainEqual([status, body.events && idsOf(body), body.nextAfter]);
      }
    },
  );
});
