import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { holdNext, holdUntil } from '../support/gates.ts';
import { type Client, type Json, TestApp, type TestResponse } from '../support/test-app.ts';

let app: TestApp;
let admin: Client;
let second: Client;
let count = 0;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
  second = await app.member(admin, 'second@example.com');
  await app.promote(second.userId);
});
afterAll(() => app.close());

async function someUser(fullName = 'Some Body'): Promise<Json> {
  count += 1;
  return (await admin.post('/users', { fullName, email: `some-${count}@example.com` })).body;
}
const record = async (id: string) => (await admin.get(`/users/${id}`)).body;
const groupsOf = async (id: string) => {
  const { body } = await admin.get('/users/fetch/with-groups');
  return body.find((user: Json) => user._id === id)?.groups;
};
const statuses = (responses: readonly TestResponse[]) => responses.map(({ status }) => status).sort((a, b) => a - b);
const told = async (id: string) => (await app.events()).filter(({ payload }) => payload.userId === id);

/** Sends all at once and holds each ahead of its transaction until all are there. */
function atOnce(sends: readonly (() => Promise<TestResponse>)[]): Promise<TestResponse[]> {
  holdUntil(app.services.db, 'transaction', sends.length);
  return Promise.all(sends.map((send) => send()));
}

/** Returns the requests that could get an address, each for a user of its own. */
async function waysTo(email: string, each: number) {
  const spellings = [email, email.toUpperCase(), ` ${email}`, email.replace('example', 'ｅｘａｍｐｌｅ')];
  const users = await Promise.all(Array.from({ length: each * 2 }, () => someUser()));
  return Array.from({ length: each }, (_, place) => {
    const spelled = spellings[place % spellings.length];
    const [one, two] = [users[place * 2]._id, users[place * 2 + 1]._id];
    const caller = place % 2 === 0 ? admin : second;
    return [
      () => caller.post('/users', { fullName: 'New', email: spelled }),
      () => caller.patch(`/users/${one}/email`, { email: spelled }),
      () => caller.put(`/users/${two}`, { email: spelled, designation: 'Moved' }),
    ];
  }).flat();
}

/** Returns all users who have an address, in whatever spelling, deleted or not. */
async function holders(email: string): Promise<readonly string[]> {
  const rows = await app.services.db.read.selectFrom('users').select(['id', 'email']).execute();
  return rows.filter((row) => row.email.toLowerCase() === email).map(({ id }) => id);
}

describe('N4: one address, 32 ways at once (STORE-5, USER-10)', () => {
  it('409 for all but one while no one has it', async () => {
    for (const email of ['free-1@example.com', 'free-2@example.com', 'free-3@example.com']) {
      const sends = (await waysTo(email, 11)).slice(0, 32);
      const events = (await app.events()).length;
      const responses = await atOnce(sends.reverse());
      const [winner, ...losers] = statuses(responses);
      expect([[200, 201].includes(winner ?? 0), losers]).toEqual([true, Array.from({ length: 31 }, () => 409)]);
      expect(await holders(email)).toHaveLength(1);
      expect((await app.events()).length).toBe(events + 1);
    }
  });

  it('409 for all but one restoration while a deleted user has it (USER-40)', async () => {
    const { _id, email } = await someUser();
    await admin.delete(`/users/${_id}`);
    const restorations = Array.from({ length: 8 }, (_, place) => () => {
      return (place % 2 === 0 ? admin : second).post(`/users/${_id}/restore`);
    });
    const responses = await atOnce([...(await waysTo(email, 8)), ...restorations]);
    expect(responses).toHaveLength(32);
    expect(statuses(responses)).toEqual([200, ...Array.from({ length: 31 }, () => 409)]);
    expect(responses.find(({ status }) => status === 200)?.body._id).toBe(_id);
    expect(await holders(email)).toEqual([_id]);
    const types = (await told(_id)).map((event) => event.event_type);
    expect(types).toEqual(['userAdded', 'userDeleted', 'userAdded']);
  });

  it('409 for all but one, whether before or after anyone who has it gives it up', async () => {
    const { _id, email } = await someUser();
    const sends = (await waysTo(email, 10)).slice(0, 31);
    const moving = () => admin.patch(`/users/${_id}/email`, { email: `moved-${email}` });
    sends.splice(15, 0, moving);
    const responses = await atOnce(sends);
    const done = responses.filter(({ status }) => status < 300);
    expect(responses.every(({ status }) => status < 300 || status === 409)).toBe(true);
    expect(done.some(({ body }) => body._id === _id)).toBe(true);
    // One of the others comes after it, unless it is itself the last.
    expect([done.length - (await holders(email)).length, done.length <= 2]).toEqual([1, true]);
  });

  it('two people may exchange addresses only over a third one, and neither loses the own', async () => {
    const [one, two] = [await someUser(), await someUser()];
    const responses = await atOnce([
      () => admin.patch(`/users/${one._id}/email`, { email: two.email }),
      () => second.patch(`/users/${two._id}/email`, { email: one.email }),
    ]);
    expect(statuses(responses)).toEqual([409, 409]);
    expect([(await record(one._id)).email, (await record(two._id)).email]).toEqual([one.email, two.email]);
  });
});

describe('N6: changes of one person at once', () => {
  const changes = (id: string, email: string): (() => Promise<TestResponse>)[] => [
    () => admin.patch(`/users/${id}/firstName`, { firstName: 'First' }),
    () => second.patch(`/users/${id}/lastName`, { lastName: 'Last' }),
    () => admin.patch(`/users/${id}/designation`, { designation: 'Title' }),
    () => second.patch(`/users/${id}/email`, { email: `moved-${email}` }),
    () => admin.patch(`/users/${id}/fullname`, { fullName: 'Full' }),
  ];

  it('lose none of different fields, in whatever order, and the last event tells all of them (EVENT-6)', async () => {
    for (let turn = 0; turn < 10; turn += 1) {
      const { _id, email, orgId } = await someUser();
      const sends = changes(_id, email);
      const responses = await atOnce([...sends.slice(turn % 5), ...sends.slice(0, turn % 5)]);
      expect(statuses(responses)).toEqual([200, 200, 200, 200, 200]);
      const names = {
        firstName: 'First',
        lastName: 'Last',
        designation: 'Title',
        email: `moved-${email}`,
        fullName: 'Full',
      };
      expect(await record(_id)).toMatchObject(names);
      const events = await told(_id);
      expect([events.length, events.at(-1).payload]).toEqual([6, { orgId, userId: _id, ...names }]);
    }
  });

  it('lose nothing of a PUT and a PATCH of other fields, whichever is first', async () => {
    for (const turn of [0, 1]) {
      const { _id, email } = await someUser();
      const sends = [
        () =>
          admin.put(`/users/${_id}`, { email, mobile: '1234567890', address: { city: 'London' }, hasLoggedIn: true }),
        () => second.patch(`/users/${_id}/designation`, { designation: 'Title' }),
      ];
      const responses = await atOnce(turn === 0 ? sends : sends.reverse());
      expect(statuses(responses)).toEqual([200, 200]);
      const both = { mobile: '1234567890', address: { city: 'London' }, hasLoggedIn: true, designation: 'Title' };
      expect(await record(_id)).toMatchObject(both);
    }
  });

  it('404: a PUT that was sent before a deletion changes nothing after it; the deleted user is in no group (STORE-7)', async () => {
    for (let turn = 0; turn < 6; turn += 1) {
      const { _id, email } = await someUser();
      const sends = changes(_id, email);
      sends.splice(turn, 0, () => second.delete(`/users/${_id}`));
      const responses = await atOnce(sends);
      const done = responses.filter(({ status }) => status === 200).length;
      expect(statuses(responses).filter((status) => ![200, 404].includes(status))).toEqual([]);
      const events = (await told(_id)).map((event) => event.event_type);
      expect([events.at(-1), events.length]).toEqual(['userDeleted', done + 1]);
      const rows = app.services.db.read.selectFrom('group_members').where('user_id', '=', _id).selectAll();
      expect(await rows.execute()).toEqual([]);
      expect((await app.service().get(`/users/internal/${_id}`)).body.isDeleted).toBe(true);
    }
  });

  it('of 16 deletions one is 200 and the rest 404; of 16 restorations the rest is 409 (USER-37, USER-40)', async () => {
    const { _id } = await someUser();
    const sixteen = (send: (caller: Client) => Promise<TestResponse>) =>
      atOnce(Array.from({ length: 16 }, (_, place) => () => send(place % 2 === 0 ? admin : second)));
    const rest = (status: number) => [200, ...Array.from({ length: 15 }, () => status)];
    expect(statuses(await sixteen((caller) => caller.delete(`/users/${_id}`)))).toEqual(rest(404));
    expect(statuses(await sixteen((caller) => caller.post(`/users/${_id}/restore`)))).toEqual(rest(409));
    expect((await told(_id)).map((event) => event.event_type)).toEqual(['userAdded', 'userDeleted', 'userAdded']);
    expect(await groupsOf(_id)).toEqual([{ name: 'everyone', type: 'everyone' }]);
  });
});

describe('A5: administrators against each other', () => {
  it('409, 409: two who delete each other at once (USER-36)', async () => {
    const responses = await atOnce([
      () => admin.delete(`/users/${second.userId}`),
      () => second.delete(`/users/${admin.userId}`),
    ]);
    expect(statuses(responses)).toEqual([409, 409]);
    for (const client of [admin, second]) {
      expect((await client.get(`/users/${client.userId}/adminCheck`)).status).toBe(200);
    }
  });

  it('409: anyone who becomes an administrator while being deleted stays (USER-36)', async () => {
    const { _id } = await someUser();
    const gate = holdNext(app.services.db, 'transaction');
    const response = admin.delete(`/users/${_id}`);
    await gate.arrived;
    await app.promote(_id);
    gate.open();
    expect((await response).status).toBe(409);
    expect((await record(_id)).isDeleted).toBe(false);
    await app.demote(_id);
  });

  it('403, and nothing is done, for anyone who ceases to be an administrator meanwhile, by session and by token (AUTH-29)', async () => {
    const { _id } = await someUser();
    const gone = await someUser();
    await admin.delete(`/users/${gone._id}`);
    const acts: readonly ((caller: Client) => Promise<TestResponse>)[] = [
      (caller) => caller.delete(`/users/${_id}`),
      (caller) => caller.post(`/users/${gone._id}/restore`),
      (caller) => caller.post('/users', { fullName: 'New', email: 'never@example.com' }),
      (caller) => caller.patch(`/users/${_id}/fullname`, { fullName: 'Late' }),
      (caller) => caller.put(`/users/${_id}`, { email: 'late@example.com' }),
    ];
    for (const caller of [second, await second.token()]) {
      for (const act of acts) {
        const gate = holdNext(app.services.db, 'transaction');
        const response = act(caller);
        await gate.arrived;
        await app.demote(second.userId);
        const [events, audit] = [await app.events(), await app.audit()];
        gate.open();
        expect((await response).status).toBe(403);
        expect([await app.events(), await app.audit()]).toEqual([events, audit]);
        await app.promote(second.userId);
      }
    }
  });

  it('200: oneself may still be changed by anyone who ceases to be an administrator meanwhile (AUTH-30)', async () => {
    const gate = holdNext(app.services.db, 'transaction');
    const response = second.patch(`/users/${second.userId}/designation`, { designation: 'Member' });
    await gate.arrived;
    await app.demote(second.userId);
    gate.open();
    expect((await response).status).toBe(200);
    await app.promote(second.userId);
  });
});
