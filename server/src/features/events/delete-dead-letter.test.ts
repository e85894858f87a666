import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storedRows } from '../../../test/support/second-connection.ts';
import { addDeadLetter } from '../../../test/support/stored-relays.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

const path = (id: string) => `/events/dead-letters/${id}`;

let app: TestApp;
let admin: Client;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
});
afterAll(() => app.close());

const listed = async () => (await admin.get('/events/dead-letters')).body.deadLetters.map(({ id }: Json) => id);

describe('DELETE /events/dead-letters/:letterId', () => {
  it('200: gives one up; the event stays in the log (EVENT-23)', async () => {
    const [first, second] = [await addDeadLetter(app, 1), await addDeadLetter(app, 2)];
    const events = await app.events();
    const { status, body } = await admin.delete(path(first));
    expect([status, body]).toEqual([200, { message: 'Dead letter deleted successfully' }]);
    expect(await listed()).toEqual([second]);
    expect(await app.events()).toEqual(events);
    expect((await app.audit()).at(-1)).toMatchObject({
      action: 'dead-letter.deleted',
      actor_user_id: admin.userId,
      details: { letterId: first },
    });
  });

  it('404: one that is not there, or not any more; nothing is written (EVENT-23)', async () => {
    const id = await addDeadLetter(app, 1);
    await admin.delete(path(id));
    const before = storedRows(app);
    for (const absent of [id, 'f'.repeat(24)]) expect((await admin.delete(path(absent))).status).toBe(404);
    expect(storedRows(app)).toEqual(before);
  });

  it('200: in upper case (HTTP-20); 400: what is no id (HTTP-19)', async () => {
    const id = await addDeadLetter(app, 1);
    expect((await admin.delete(path(id.toUpperCase()))).status).toBe(200);
    for (const wrong of ['x', `${id}0`, '1']) expect((await admin.delete(path(wrong))).status).toBe(400);
  });

  it('401 and 403: for administrators, by a token with org:admin (EVENT-23)', async () => {
    const id = await addDeadLetter(app, 1);
    const member = await app.member(admin, 'grace@example.com');
    const others = [app.anonymous, app.service(['EVENTS_READ']), member, await admin.token({ scopes: ['org:write'] })];
    const statuses = await Promise.all(others.map(async (caller) => (await caller.delete(path(id))).status));
    expect(statuses).toEqual([401, 401, 403, 403]);
    expect((await member.delete(path('x'))).status).toBe(403);
    expect((await (await admin.token({ scopes: ['org:admin'] })).delete(path(id))).status).toBe(200);
  });
});
