import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Json, TestApp, type TestResponse } from '../../../test/support/test-app.ts';

const unknown = 'f'.repeat(24);
const address = {
  addressLine1: '12 St James Square',
  city: 'London',
  state: 'LDN',
  country: 'UK',
  postCode: 'SW1Y 4JH',
};
const names = { fullName: 'Ada King', firstName: 'Ada', middleName: 'Augusta', lastName: 'King' };
const everything = { ...names, mobile: '+441234567890', designation: 'Countess', address, hasLoggedIn: true };

describe('PUT /users/:id', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  let count = 0;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  async function someUser(given: Json = {}): Promise<Json> {
    count += 1;
    const email = `some-${count}@example.com`;
    const { body } = await admin.post('/users', { fullName: 'Some Body', email });
    return Object.keys(given).length === 0 ? body : (await admin.put(`/users/${body._id}`, { email, ...given })).body;
  }
  const put = (id: string, body: Json, client = admin) => client.put(`/users/${id}`, body);
  const code = ({ status, body }: TestResponse) => [status, body.error?.code];

  it('200: sets everything that it takes, and the answer is what is stored (USER-25, USER-30)', async () => {
    const before = await someUser();
    app.clock.advance(60_000);
    const email = `new-${before.email}`;
    const { status, body } = await put(before._id, { email, ...everything });
    expect(status).toBe(200);
    const updatedAt = new Date(app.clock.now()).toISOString();
    expect(body).toEqual({ ...before, email, ...everything, emailVerifiedAt: updatedAt, updatedAt });
    expect((await admin.get(`/users/${before._id}`)).body).toEqual(body);
  });

  it('200: what is absent stays, the address too (USER-25)', async () => {
    const before = await someUser(everything);
    const { status, body } = await put(before._id, { email: before.email });
    expect([status, body]).toEqual([200, { ...before, updatedAt: body.updatedAt }]);
    expect((await app.audit()).at(-1).details).toEqual({ fields: ['email'] });
    const { body: one } = await put(before._id, { email: before.email, designation: 'Analyst' });
    expect(one).toEqual({ ...before, designation: 'Analyst', updatedAt: one.updatedAt });
  });

  it.each([null, ''])('200: %j clears each optional field, and nothing else (USER-29)', async (nothing) => {
    for (const key of ['firstName', 'middleName', 'lastName', 'mobile', 'designation', 'address']) {
      const before = await someUser({ ...everything, fullName: 'Countess' });
      const { [key]: _, ...rest } = before;
      const { status, body } = await put(before._id, { email: before.email, [key]: nothing });
      expect([key, status, body]).toEqual([key, 200, { ...rest, updatedAt: body.updatedAt }]);
      expect((await admin.get(`/users/${before._id}`)).body).toEqual(body);
    }
  });

  it.each([
    ['email', { email: undefined }],
    ['email', { email: null }],
    ['email', { email: '' }],
    ['email', { email: 'victim,evil@evil.io' }],
    ['fullName', { fullName: null }],
    ['fullName', { fullName: '' }],
    ['fullName', { fullName: ' \u3000' }],
    ['fullName', { fullName: 'a\u202eb' }],
    ['firstName', { firstName: 'x'.repeat(256) }],
    ['middleName', { middleName: 'a\nb' }],
    ['lastName', { lastName: ['x'] }],
    ['designation', { designation: 7 }],
    ['mobile', { mobile: '12345' }],
    ['mobile', { mobile: '+12345678901234567' }],
    ['mobile', { mobile: '1234567890\n' }],
    ['mobile', { mobile: ' ' }],
    ['mobile', { mobile: 1234567890 }],
    ['hasLoggedIn', { hasLoggedIn: 'true' }],
    ['hasLoggedIn', { hasLoggedIn: 1 }],
    ['address', { address: 'London' }],
    ['address', { address: [] }],
    ['address.city', { address: { city: 7 } }],
    ['address.city', { address: { city: 'a\0b' } }],
    ['address.postCode', { address: { postCode: 'x'.repeat(256) } }],
  ])('400: %s %j changes nothing (USER-8, USER-13, USER-29, HTTP-14)', async (field, change) => {
    const before = await someUser(everything);
    const events = (await app.events()).length;
    const response = await put(before._id, { email: before.email, ...change });
    expect(code(response)).toEqual([400, 'VALIDATION_ERROR']);
    const told = response.body.error.details.map((problem: { field: string }) => problem.field);
    // NUL is rejected in any text, before the field is known.
    expect([[`body.${field}`], ['body']]).toContainEqual(told);
    expect((await admin.get(`/users/${before._id}`)).body).toEqual(before);
    expect((await app.events()).length).toBe(events);
  });

  it.each(['1234567890', '+123456789012345'])('200: the telephone number %s (USER-8)', async (mobile) => {
    expect((await someUser({ mobile })).mobile).toBe(mobile);
  });

  it('200: the address is replaced as a whole, and holds nothing that an address has not (USER-30)', async () => {
    const before = await someUser({ address });
    const { body } = await put(before._id, { email: before.email, address: { city: ' Paris ', planet: 'Earth' } });
    expect(body.address).toEqual({ city: 'Paris' });
  });

  it('200: unknown keys, and those that the service governs, are ignored (USER-26)', async () => {
    const before = await someUser();
    const evil = { orgId: unknown, _id: unknown, id: unknown, slug: 'evil', isDeleted: true, deletedBy: unknown };
    const roles = { role: 'admin', roles: ['admin'], groups: ['admin'], isAdmin: true, password: 'Evil-Horse-77' };
    const store = { org_id: unknown, recovery_email: 'evil@example.com', has_logged_in: 1, createdAt: 0, updatedAt: 0 };
    const { status, body } = await put(before._id, { ...evil, ...roles, ...store, email: before.email });
    expect([status, body]).toEqual([200, before]);
    expect((await app.audit()).at(-1).details).toEqual({ fields: ['email'] });
  });

  it('200: publishes userUpdated with the full set, what is not set left out (USER-27, EVENT-6)', async () => {
    const { _id, orgId, email } = await someUser();
    const events = (await app.events()).length;
    await put(_id, { email, ...everything });
    await put(_id, { email, firstName: null, middleName: '', designation: null });
    const told = (await app.events()).slice(events);
    expect(told.map((event) => event.event_type)).toEqual(['userUpdated', 'userUpdated']);
    const common = { orgId, userId: _id, email };
    expect(told.map((event) => event.payload)).toEqual([
      { ...common, ...names, designation: 'Countess' },
      { ...common, fullName: 'King', lastName: 'King' },
    ]);
  });

  it('200: an administrator writes hasLoggedIn both ways; it is audited, and opens nothing (USER-31)', async () => {
    const before = await someUser();
    const { body: on } = await put(before._id, { email: before.email, hasLoggedIn: true });
    expect(on.hasLoggedIn).toBe(true);
    expect((await app.audit()).at(-1)).toMatchObject({
      action: 'user.updated',
      actor_user_id: admin.userId,
      subject_id: before._id,
      details: { fields: ['email', 'hasLoggedIn'] },
    });
    expect((await app.signInTokens(before.email)).status).toBe(401);
    const off = { email: 'grace@example.com', hasLoggedIn: false };
    for (const own of [member, await member.token({ scopes: ['user:write'] })]) {
      expect((await put(member.userId, off, own)).body.hasLoggedIn).toBe(true);
    }
    expect((await put(member.userId, off)).body.hasLoggedIn).toBe(false);
    expect((await member.get('/org')).status).toBe(200);
    expect((await app.signInTokens('grace@example.com')).status).toBe(200);
    expect((await member.get(`/users/${member.userId}`)).body.hasLoggedIn).toBe(true);
  });

  it('200: oneself, by session and by token; 403: anyone else, whatever is sent (AUTH-30, ERR-17, SCOPE-12)', async () => {
    const token = await member.token({ scopes: ['user:write'] });
    const reader = await member.token({ scopes: ['user:read'] });
    const email = 'grace@example.com';
    for (const client of [member, token]) {
      expect((await put(member.userId, { email, designation: 'Admiral' }, client)).status).toBe(200);
      for (const id of [admin.userId, unknown, 'x']) {
        for (const body of [{ email }, { email: 7 }, []]) {
          expect(code(await put(id, body, client))).toEqual([403, 'FORBIDDEN']);
        }
      }
    }
    expect((await put(member.userId, { email }, reader)).body.message).toBe('Insufficient scope. Required: user:write');
  });

  it('404: an unknown user and a deleted one; 400: no id (USER-28, HTTP-19)', async () => {
    const gone = await someUser();
    await app.deleteUser(gone._id);
    const body = { email: 'fresh@example.com' };
    for (const id of [unknown, gone._id]) expect(code(await put(id, body))).toEqual([404, 'NOT_FOUND']);
    expect(code(await put('x', body))).toEqual([400, 'VALIDATION_ERROR']);
    expect((await app.service().get(`/users/internal/${gone._id}`)).body.email).toBe(gone.email);
  });
});
