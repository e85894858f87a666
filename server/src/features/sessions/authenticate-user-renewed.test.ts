import { hash } from '@node-rs/argon2';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, password, TestApp } from '../../../test/support/test-app.ts';

/** The cost of new hashes. */
const today = { algorithm: 2, memoryCost: 19_456, timeCost: 2, parallelism: 1 };

describe('a password hash of another cost at POST /userAccount/authenticate', () => {
  let app: TestApp;
  let admin: Client;
  let users = 0;
  beforeAll(async () => {
    app = await TestApp.start({}, undefined, { isHashDear: true });
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  async function storedHash(userId: string): Promise<string> {
    const rows = app.services.db.read.selectFrom('password_credentials').where('user_id', '=', userId).selectAll();
    return (await rows.executeTakeFirstOrThrow()).password_hash;
  }

  /** Creates a user whose password was hashed at some cost. */
  async function someUser(cost: Partial<typeof today>) {
    users += 1;
    const email = `some-${users}@example.com`;
    const session = await app.member(admin, email);
    const before = await hash(password, { ...today, ...cost });
    await app.services.db.transaction((tx) =>
      tx
        .updateTable('password_credentials')
        .set({ password_hash: before })
        .where('user_id', '=', session.userId)
        .execute(),
    );
    return { email, session, before, userId: session.userId };
  }

  it.each([
    ['less memory', { memoryCost: 8_192 }],
    ['less time', { timeCost: 1 }],
    ['less of both', { memoryCost: 4_096, timeCost: 1 }],
    ['less memory, more time', { memoryCost: 9_216, timeCost: 4 }],
  ])('200: is made anew by the right password alone, once: %s (AUTH-52)', async (_, cost) => {
    const { email, userId, before } = await someUser(cost);
    expect((await app.signInTokens(email, `${password}x`)).status).toBe(401);
    expect(await storedHash(userId)).toBe(before);
    expect((await app.signInTokens(email)).status).toBe(200);
    const renewed = await storedHash(userId);
    expect(renewed).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect((await app.signInTokens(email, `${password}x`)).status).toBe(401);
    expect((await app.signInTokens(email)).status).toBe(200);
    expect(await storedHash(userId)).toBe(renewed);
  });

  it.each([
    ['the same', {}],
    ['more', { memoryCost: 32_768, timeCost: 3 }],
  ])('200: stays as it is: %s (AUTH-52)', async (_, cost) => {
    const { email, userId, before } = await someUser(cost);
    expect((await app.signInTokens(email)).status).toBe(200);
    expect(await storedHash(userId)).toBe(before);
  });

  it('200: is no change of the password: sessions go on, and no one is told of one (AUTH-52)', async () => {
    const { email, session } = await someUser({ timeCost: 1 });
    const rows = (await app.audit()).length;
    expect((await app.signInTokens(email)).status).toBe(200);
    expect((await session.get('/org')).status).toBe(200);
    expect((await app.audit()).slice(rows).map(({ action }) => action)).toEqual(['session.started']);
  });
});
