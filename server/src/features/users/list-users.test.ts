import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

describe('GET /users', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  const emails = async (client: Client) => (await client.get('/users')).body.map(({ email }: Json) => email);

  it('200: a bare array, in order of creation, for any member (USER-1)', async () => {
    for (const name of ['zoe', 'bob', 'Åsa', 'mia']) {
      // All in one millisecond of the clock: the order holds within it too.
      await admin.post('/users', { fullName: name, email: `${name.replace('Å', 'a')}@example.com` });
    }
    app.clock.advance(-60_000);
    await admin.post('/users', { fullName: 'After', email: 'after@example.com' });
    const expected = ['ada', 'grace', 'zoe', 'bob', 'asa', 'mia', 'after'].map((name) => `${name}@example.com`);
    expect(await emails(member)).toEqual(expected);
    expect(await emails(admin)).toEqual(expected);
    app.clock.advance(60_000);
  });

  it('200: each item is the record that GET /users/:id answers (USER-3)', async () => {
    const { body } = await member.get('/users');
    expect(body.length).toBeGreaterThan(2);
    for (const user of body) expect((await member.get(`/users/${user._id}`)).body).toEqual(user);
  });

  it('200: without deleted users (USER-1)', async () => {
    const { body } = await admin.post('/users', { fullName: 'Gone', email: 'gone@example.com' });
    expect(await emails(admin)).toContain('gone@example.com');
    await app.deleteUser(body._id);
    expect(await emails(admin)).not.toContain('gone@example.com');
  });

  it.each([
    ['every character that an address may have', { email: "a.!#$%&'*+/=?^_`{|}~-9@a-1.xn--bcher-kva.example" }],
    ['the longest address', { email: `${'l'.repeat(64)}@${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(61)}` }],
    ['the longest name', { fullName: '👩‍🚀'.repeat(85) }],
    ['a name that looks like JSON', { fullName: '"}],[{"_id":"\\\\u0000' }],
    ['the longest of everything else', { mobile: '+123456789012345', designation: '山'.repeat(255) }],
  ])('200: anyone who can be created can be listed: %s (USER-1, RUN-9)', async (_, user) => {
    const wanted = { fullName: 'X', email: `${Object.values(user).join('').length}@example.com`, ...user };
    const created = await admin.post('/users', wanted);
    expect([created.status, created.body]).toMatchObject([201, wanted]);
    const { status, body } = await admin.get('/users');
    expect([status, body.at(-1)]).toEqual([200, created.body]);
    // Rule: ADDRESS-1.
    const { emailVerifiedAt: __, ...shown } = created.body;
    const page = await member.get('/users?sortBy=createdAt&sortOrder=desc&limit=1');
    expect([page.status, page.body.users]).toMatchObject([200, [shown]]);
    expect(page.body.users[0]).not.toHaveProperty('emailVerifiedAt');
    expect((await member.get('/users/fetch/with-groups')).body.at(-1)).toMatchObject({ email: wanted.email });
  });

  it('200: a user shows in the list as soon as the creation is answered', async () => {
    for (let round = 0; round < 10; round += 1) {
      await admin.post('/users', { fullName: 'Now', email: `now${round}@example.com` });
      expect((await emails(member)).at(-1)).toBe(`now${round}@example.com`);
    }
  });

  it('401 without a credential, 403 without the scope (ERR-14, ERR-15)', async () => {
    const refused = await app.anonymous.get('/users');
    expect([refused.status, refused.body.error.code]).toEqual([401, 'UNAUTHORIZED']);
    expect(refused.headers.get('www-authenticate')).toBe('Bearer realm="latchkey"');
    const token = await admin.token({ scopes: ['user:write', 'user:invite'] });
    expect((await token.get('/users')).body.message).toBe('Insufficient scope. Required: user:read');
    expect((await (await member.token({ scopes: ['user:read'] })).get('/users')).status).toBe(200);
  });
});
