import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Json, TestApp, type TestResponse } from '../../../test/support/test-app.ts';

const unknown = 'f'.repeat(24);
const later = 60_000;

let app: TestApp;
let admin: Client;
let member: Client;
let other: Client;
let count = 0;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
  member = await app.member(admin, 'grace@example.com');
  other = await app.member(admin, 'alan@example.com', 'Alan Turing');
});
afterAll(() => app.close());

/** Creates a user whom a test may change at will. */
async function someUser(given: Json = {}): Promise<Json> {
  count += 1;
  const { body } = await admin.post('/users', { fullName: 'Some Body', email: `some-${count}@example.com`, ...given });
  return body;
}

const code = ({ status, body }: TestResponse) => [status, body.error?.code];
const fields = ({ body }: TestResponse) => body.error.details.map(({ field }: { field: string }) => field);

/** Routes of one field: the input, and the part of it that is returned. */
const routes = [
  { field: 'fullname', key: 'fullName', value: 'Augusta King', told: ['fullName', 'email'] },
  { field: 'firstName', key: 'firstName', value: 'Augusta', told: ['firstName', 'fullName'] },
  { field: 'lastName', key: 'lastName', value: 'King', told: ['lastName', 'fullName'] },
  { field: 'designation', key: 'designation', value: 'Countess', told: ['designation', 'fullName'] },
  { field: 'email', key: 'email', value: 'augusta@example.com', told: ['email', 'fullName'] },
] as const;

describe.each(routes)('PATCH /users/:id/$field', ({ field, key, value, told }) => {
  const path = (id: string) => `/users/${id}/${field}`;
  const send = (client: Client, id: string, body: Json = { [key]: value }) => client.patch(path(id), body);

  it('200: an administrator changes it; the answer is what is stored from now on (USER-22, USER-23, USER-24)', async () => {
    const before = await someUser();
    app.clock.advance(later);
    const { status, body } = await send(admin, before._id);
    expect(status).toBe(200);
    const now = new Date(app.clock.now()).toISOString();
    const verified = key === 'email' ? { emailVerifiedAt: now } : {};
    expect(body).toEqual({ ...before, [key]: value, ...verified, updatedAt: now });
    expect(Object.keys(body)).toEqual(expect.arrayContaining(['_id', ...told, 'updatedAt']));
    expect((await other.get(`/users/${before._id}`)).body).toEqual({ ...body, emailVerifiedAt: undefined });
    if (key === 'email') await send(admin, before._id, { email: before.email });
  });

  it('200: everyone changes it of oneself, by session and by token, with the id in either case (AUTH-30, SCOPE-12)', async () => {
    const token = await member.token({ scopes: ['user:write'] });
    const { body: before } = await member.get(`/users/${member.userId}`);
    for (const client of [member, token]) {
      expect((await send(client, member.userId.toUpperCase())).status).toBe(200);
      expect((await member.get(`/users/${member.userId}`)).body[key]).toBe(value);
    }
    await send(member, member.userId, { [key]: before[key] ?? null });
  });

  it('403 FORBIDDEN: of someone else, by a member, whatever is sent and whether there is such a user (ERR-17, HTTP-4)', async () => {
    const token = await member.token();
    const responses: TestResponse[] = [];
    for (const client of [member, token]) {
      for (const id of [other.userId, admin.userId, unknown, 'x', `${unknown}0`]) {
        responses.push(await send(client, id), await send(client, id, { [key]: 7 }));
        responses.push(await client.call('PATCH', path(id), { raw: '{', headers: { 'content-type': 'text/plain' } }));
      }
    }
    expect(responses.map(code)).toEqual(responses.map(() => [403, 'FORBIDDEN']));
    expect(new Set(responses.map(({ body }) => body.message)).size).toBe(1);
  });

  it('403: a token without user:write, the administrator’s and one’s own (SCOPE-12, ERR-15)', async () => {
    for (const client of [admin, member]) {
      const token = await client.token({ scopes: ['user:read', 'user:invite', 'user:delete', 'org:admin'] });
      const { status, body } = await send(token, client.userId);
      expect([status, body.message]).toEqual([403, 'Insufficient scope. Required: user:write']);
    }
  });

  it('404: an unknown user and a deleted one, all the same (USER-28, ERR-18)', async () => {
    const gone = await someUser();
    await app.deleteUser(gone._id);
    const events = await app.events();
    const responses = [await send(admin, unknown), await send(admin, gone._id)];
    expect(responses.map(code)).toEqual(responses.map(() => [404, 'NOT_FOUND']));
    expect(responses[0]?.body.message).toBe(responses[1]?.body.message);
    expect(await app.events()).toEqual(events);
  });

  it.each(['x', 'f'.repeat(23), 'f'.repeat(25), `${'f'.repeat(23)}g`])('400: %j is no id (HTTP-19)', async (id) => {
    const response = await send(admin, id);
    expect([...code(response), fields(response)]).toEqual([400, 'VALIDATION_ERROR', ['params.id']]);
  });

  const isNeeded = key === 'fullName' || key === 'email';
  const cleared = isNeeded ? [null, '', '   '] : [];
  it.each([
    { body: {} },
    { body: { [key === 'fullName' ? 'fullname' : `${key}s`]: value } },
    ...[7, true, ['x'], { $ne: null }, 'x'.repeat(256), ...cleared].map((bad) => ({ body: { [key]: bad } })),
  ])('400: $body (USER-29, HTTP-14)', async ({ body }) => {
    const { _id } = await someUser();
    const response = await send(admin, _id, body);
    expect([...code(response), fields(response)]).toEqual([400, 'VALIDATION_ERROR', [`body.${key}`]]);
  });

  it('400: no body at all, and one that is no object', async () => {
    const { _id } = await someUser();
    for (const raw of ['', '[]', 'null', '"x"']) {
      const options = { raw, headers: { 'content-type': 'application/json' } };
      expect(code(await admin.call('PATCH', path(_id), options))).toEqual([400, 'VALIDATION_ERROR']);
    }
  });

  it('200: publishes userUpdated with the full set and writes one audit row that names the field (USER-27, EVENT-6, STORE-1)', async () => {
    const { _id, orgId, email } = await someUser();
    const token = await admin.token({ scopes: ['user:write'] });
    const [events, audit] = [await app.events(), await app.audit()];
    const { status } = await send(token, _id, { [key]: key === 'email' ? `new-${email}` : value, slug: 'evil' });
    expect(status).toBe(200);
    const [event, ...moreEvents] = (await app.events()).slice(events.length);
    const payload = { orgId, userId: _id, email, fullName: 'Some Body', [key]: value };
    if (key === 'email') Object.assign(payload, { email: `new-${email}`, emailVerified: false });
    expect([event, moreEvents]).toEqual([expect.objectContaining({ event_type: 'userUpdated', payload }), []]);
    const rows = (await app.audit()).slice(audit.length);
    const actor = { actor_user_id: admin.userId, actor_token_id: token.tokenId, org_id: orgId };
    expect(rows).toMatchObject([{ action: 'user.updated', subject_id: _id, details: { fields: [key] }, ...actor }]);
  });

  it('200: nothing else that is sent along is changed (USER-26)', async () => {
    const before = await someUser();
    const more = {
      fullName: 'Evil',
      firstName: 'Evil',
      lastName: 'Evil',
      designation: 'Evil',
      email: 'evil@example.com',
    };
    const good = { [key]: key === 'email' ? `new-${before.email}` : value };
    const { body } = await send(admin, before._id, { ...more, mobile: '+1234567890', hasLoggedIn: true, ...good });
    expect(body).toEqual({ ...before, ...good, updatedAt: body.updatedAt });
  });
});

describe.each(routes.filter(({ key }) => key !== 'fullName' && key !== 'email'))(
  'PATCH /users/:id/$field with nothing',
  ({ field, key, value }) => {
    it.each([null, '', ' \u3000 '])('200: %j clears it (USER-29)', async (nothing) => {
      const { _id } = await someUser();
      await admin.patch(`/users/${_id}/${field}`, { [key]: value });
      const { status, body } = await admin.patch(`/users/${_id}/${field}`, { [key]: nothing });
      expect([status, key in body, body.fullName]).toEqual([200, false, 'Some Body']);
      expect((await app.events()).at(-1).payload).not.toHaveProperty(key);
    });
  },
);

describe('names (USER-13, USER-32)', () => {
  it.each([
    ['李', '小龍'],
    ['Żółć', 'ŁÓDŹ'],
    ['عمر', 'الخيام'],
    ['Љубица', 'Ђорђевић'],
    ['👩🏽‍🚀', 'O’Neil-van der Berg'],
    ['नरेन्द्र', 'ஸ்ரீ'],
  ])('200: %s %s, of any script', async (firstName, lastName) => {
    const { _id } = await someUser({ fullName: 'X' });
    await admin.patch(`/users/${_id}/firstName`, { firstName });
    await admin.patch(`/users/${_id}/lastName`, { lastName });
    const { body } = await admin.patch(`/users/${_id}/fullname`, { fullName: `${firstName} ${lastName}` });
    expect(body).toMatchObject({ firstName, lastName, fullName: `${firstName} ${lastName}` });
    const { body: after } = await admin.patch(`/users/${_id}/lastName`, { lastName: 'Я' });
    expect(after.fullName).toBe(`${firstName} Я`);
  });

  it('200: trimmed and in NFC; the list is searched by the new name', async () => {
    const { _id } = await someUser();
    const { body } = await admin.patch(`/users/${_id}/fullname`, { fullName: ' \u3000Zoe\u0308 Que\u0301bec ' });
    expect(body.fullName).toBe('Zo\u00eb Qu\u00e9bec');
    const search = encodeURIComponent('zo\u00cb QU\u00c9');
    const found = await admin.get(`/users?search=${search}`);
    expect(found.body.users.map((user: Json) => user._id)).toEqual([_id]);
  });

  it.each(['a\nb', 'a\0b', 'a\u202eb', 'a\u2028b', 'a\u001b[2J', '\ud800'])('400: %j', async (bad) => {
    const { _id } = await someUser();
    for (const [field, key] of [['fullname', 'fullName'], ['firstName'], ['lastName'], ['designation']]) {
      expect((await admin.patch(`/users/${_id}/${field}`, { [key ?? field ?? '']: bad })).status).toBe(400);
    }
  });

  it('200: the full name follows first and last name where it is made of them, and only there', async () => {
    const { _id } = await someUser({ fullName: 'Ada Lovelace' });
    const set = async (field: string, value: string | null) =>
      (await admin.patch(`/users/${_id}/${field}`, { [field]: value })).body.fullName;
    expect(await set('firstName', 'Ada')).toBe('Ada Lovelace');
    expect(await set('lastName', 'Lovelace')).toBe('Ada Lovelace');
    expect(await set('lastName', 'King')).toBe('Ada King');
    expect((await app.events()).at(-1).payload).toMatchObject({ lastName: 'King', fullName: 'Ada King' });
    expect(await set('firstName', null)).toBe('King');
    expect(await set('lastName', null)).toBe('King');
    expect(await set('firstName', 'Augusta')).toBe('King');
  });

  it('400: names that make too long a full name together change nothing', async () => {
    const { _id } = await someUser({ fullName: 'Ada Lovelace' });
    await admin.put(`/users/${_id}`, { email: `some-${count}@example.com`, firstName: 'Ada', lastName: 'Lovelace' });
    const events = await app.events();
    const response = await admin.patch(`/users/${_id}/lastName`, { lastName: 'x'.repeat(255) });
    expect([response.status, fields(response)]).toEqual([400, ['body.lastName']]);
    expect((await admin.get(`/users/${_id}`)).body.lastName).toBe('Lovelace');
    expect(await app.events()).toEqual(events);
  });
});
