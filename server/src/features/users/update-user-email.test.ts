import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp, type TestResponse } from '../../../test/support/test-app.ts';
import { apiErrors } from '../../base/api-errors.ts';

let app: TestApp;
let admin: Client;
let count = 0;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
});
afterAll(() => app.close());

/** Creates a user who can sign in; returns the address too. */
async function someUser(): Promise<{ client: Client; email: string; id: string }> {
  count += 1;
  const email = `some-${count}@example.com`;
  const client = await app.member(admin, email);
  return { client, email, id: client.userId };
}

const code = ({ status, body }: TestResponse) => [status, body.error?.code];

/** The two routes that change an address. */
const ways = [
  ['PATCH', (client: Client, id: string, email: unknown) => client.patch(`/users/${id}/email`, { email })],
  ['PUT', (client: Client, id: string, email: unknown) => client.put(`/users/${id}`, { email })],
] as const;

describe.each(ways)('an e-mail address, changed with %s', (_, change) => {
  it('200: in its one spelling; one signs in with the new one, and with the old one no more (USER-9, USER-24)', async () => {
    const { client, email, id } = await someUser();
    const { status, body } = await change(client, id, ` New-${email}`.toUpperCase());
    expect([status, body.email]).toEqual([200, `new-${email}`]);
    expect((await app.signInTokens(`new-${email}`)).status).toBe(200);
    expect((await app.signInTokens(email)).status).toBe(401);
    expect((await client.get('/org')).status).toBe(200);
  });

  it('200: the domain in its IDNA form (USER-9)', async () => {
    const { id } = await someUser();
    expect((await change(admin, id, `a${count}@BÜCHER.example`)).body.email).toBe(`a${count}@xn--bcher-kva.example`);
  });

  it.each([
    ['in other letters', (email: string) => email.toUpperCase()],
    ['with spaces around it', (email: string) => ` ${email}\t`],
    ['with a domain in full width', (email: string) => email.replace('example', 'ｅｘａｍｐｌｅ')],
  ])('one’s own, %s, is 200; someone else’s is 409 and changes nothing (USER-10, USER-33)', async (__, spell) => {
    const { client, email, id } = await someUser();
    const own = await change(client, id, spell(email));
    expect([own.status, own.body.email]).toEqual([200, email]);
    const another = await someUser();
    const [events, audit] = [await app.events(), await app.audit()];
    for (const caller of [admin, another.client]) {
      expect(code(await change(caller, another.id, spell(email)))).toEqual([409, 'CONFLICT']);
    }
    expect((await admin.get(`/users/${another.id}`)).body.email).toBe(another.email);
    expect([await app.events(), await app.audit()]).toEqual([events, audit]);
  });

  it('409: a deleted user’s address (USER-10, USER-33)', async () => {
    const gone = await someUser();
    await app.deleteUser(gone.id);
    const { client, id, email } = await someUser();
    expect(code(await change(client, id, gone.email.toUpperCase()))).toEqual([409, 'CONFLICT']);
    expect((await admin.get(`/users/${id}`)).body.email).toBe(email);
  });

  it('409: the last verified address of another, anyone who asks, until another one is verified (ADDRESS-3, USER-10, USER-33)', async () => {
    const moved = await someUser();
    await change(await moved.client.token({ scopes: ['user:write'] }), moved.id, `one-${moved.email}`);
    const { client, id, email } = await someUser();
    const [events, audit] = [await app.events(), await app.audit()];
    for (const caller of [admin, client, await client.token({ scopes: ['user:write'] })]) {
      for (const taken of [moved.email, moved.email.toUpperCase()]) {
        const response = await change(caller, id, taken);
        expect([...code(response), response.body.message]).toEqual([409, 'CONFLICT', apiErrors.emailTaken.text]);
      }
    }
    expect((await admin.get(`/users/${id}`)).body.email).toBe(email);
    expect(await app.events()).toEqual(events);
    // Making the token is all that was noted.
    expect((await app.audit()).slice(audit.length).map(({ action }) => action)).toEqual(['token.created']);
    // A user whose address was changed twice by a token still owns the first one, and no longer the one between.
    await change(await moved.client.token({ scopes: ['user:write'] }), moved.id, `two-${moved.email}`);
    expect((await change(client, id, moved.email)).status).toBe(409);
    expect((await change(client, id, `one-${moved.email}`)).status).toBe(200);
    await change(moved.client, moved.id, `three-${moved.email}`);
    expect((await change(client, id, moved.email)).status).toBe(409);
    await change(admin, moved.id, `four-${moved.email}`);
    expect((await change(client, id, moved.email)).status).toBe(200);
  });

  it('409: also where the one whose recovery mail goes there is deleted (USER-33)', async () => {
    const gone = await someUser();
    await change(await gone.client.token(), gone.id, `one-${gone.email}`);
    await app.deleteUser(gone.id);
    const { client, id } = await someUser();
    for (const taken of [gone.email, `one-${gone.email}`]) {
      expect(code(await change(client, id, taken))).toEqual([409, 'CONFLICT']);
    }
  });

  it('200: one may go back to the address that one’s own recovery mail goes to (USER-33)', async () => {
    for (const who of ['token', 'self', 'admin'] as const) {
      const { client, email, id } = await someUser();
      const token = await client.token({ scopes: ['user:write'] });
      expect((await change(token, id, `one-${email}`)).status).toBe(200);
      const { status, body } = await change({ token, self: client, admin }[who], id, email);
      expect([status, body.email]).toEqual([200, email]);
    }
  });

  it('the audit row holds both addresses where the address moved, and only there (STORE-1)', async () => {
    const { client, email, id } = await someUser();
    const rows = async () =>
      (await app.audit()).filter((row) => row.action === 'user.updated' && row.subject_id === id);
    await change(client, id, `NEW-${email}`);
    await change(client, id, `new-${email}`);
    await change(admin, id, email);
    await client.patch(`/users/${id}/designation`, { designation: 'X' });
    const [first, second] = [email, `new-${email}`];
    expect((await rows()).map(({ details: { fields }, changes: { email } }) => [...fields, email])).toEqual([
      ['email', { before: first, after: second }],
      ['email', undefined],
      ['email', { before: second, after: first }],
      ['designation', undefined],
    ]);
  });

  it('the address so far is free at once, for someone new and for a change', async () => {
    const first = await someUser();
    await change(admin, first.id, `moved-${first.email}`);
    const second = await someUser();
    expect((await change(admin, second.id, first.email)).status).toBe(200);
    expect((await admin.post('/users', { fullName: 'N', email: second.email })).status).toBe(201);
  });

  it.each([
    'no-at.example.com',
    'a@b',
    'a@b..c',
    'victim,evil@evil.io',
    'x<evil@evil.io>',
    'a(c)b@x.io',
    'a@-x.io',
    'ä@x.io',
    'a b@x.io',
    'a@x.io\r\nBcc: b@x.io',
    `${'a'.repeat(65)}@x.io`,
    `a@${'x'.repeat(250)}.io`,
    `${'a'.repeat(100_000)}@`,
  ])('400: %j (USER-11, USER-12)', async (bad) => {
    const { id } = await someUser();
    const response = await change(admin, id, bad);
    expect(code(response)).toEqual([400, 'VALIDATION_ERROR']);
    expect(response.body.error.details[0].field).toBe('body.email');
  });

  describe('where recovery mail goes meanwhile', () => {
    const recoveryOf = async (id: string) => {
      const users = app.services.db.read.selectFrom('users').where('id', '=', id).select('recovery_email');
      return (await users.executeTakeFirstOrThrow()).recovery_email;
    };

    it('to the earlier address once the user changed it, over further changes, until it is changed back', async () => {
      const { client, email, id } = await someUser();
      const token = await client.token({ scopes: ['user:write'] });
      expect(await recoveryOf(id)).toBeNull();
      for (const [next, by] of [
        [`one-${email}`, token],
        [`two-${email}`, client],
        [`two-${email}`, token],
      ] as const) {
        expect((await change(by, id, next)).status).toBe(200);
        expect(await recoveryOf(id)).toBe(email);
        expect((await client.get(`/users/${id}`)).body.email).toBe(next);
      }
      expect((await change(token, id, email)).status).toBe(200);
      expect(await recoveryOf(id)).toBeNull();
    });

    it('to the new address once an administrator changed it in a session, and with no token (ADDRESS-2)', async () => {
      const { email, id } = await someUser();
      await change(await admin.token({ scopes: ['user:write'] }), id, `one-${email}`);
      expect(await recoveryOf(id)).toBe(email);
      await change(admin, id, `two-${email}`);
      expect(await recoveryOf(id)).toBeNull();
    });

    it('to the earlier address still, whatever else is changed and whether the user is deleted and restored', async () => {
      const { client, email, id } = await someUser();
      await change(await client.token(), id, `one-${email}`);
      await client.put(`/users/${id}`, { email: `one-${email}`, designation: 'X' });
      await client.patch(`/users/${id}/fullname`, { fullName: 'X' });
      await admin.delete(`/users/${id}`);
      await admin.post(`/users/${id}/restore`);
      expect(await recoveryOf(id)).toBe(email);
    });

    it('is told to no one but by what gives verified addresses alone (ADDRESS-15)', async () => {
      const { client, email, id } = await someUser();
      const token = await client.token();
      const texts = [(await change(token, id, `one-${email}`)).text];
      expect((await admin.get('/users/fetch/with-groups')).text).toContain(`"${email}"`);
      for (const path of [`/users/${id}`, '/users', '/users?search=one-']) {
        texts.push((await admin.get(path)).text);
      }
      texts.push(JSON.stringify((await app.events()).at(-1)));
      for (const text of texts)
        expect([text.includes(`"${email}"`), text.includes('recovery')]).toEqual([false, false]);
    });
  });
});
