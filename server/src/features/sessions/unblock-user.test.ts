import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attemptSignIn } from '../../../test/support/sign-in.ts';
import { type Client, password, TestApp } from '../../../test/support/test-app.ts';
import { day } from '../../base/clock.ts';

const email = 'grace@example.com';

describe('PUT /users/:id/unblock', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  let path = '';
  beforeAll(async () => {
    app = await TestApp.start({ RATE_LIMIT: 'on', TRUST_PROXY: '127.0.0.1' });
    admin = await app.setUp();
    member = await app.member(admin, email);
    path = `/users/${member.userId}/unblock`;
  });
  afterAll(() => app.close());

  const tryFrom = async (network: string, given: string, who = email) =>
    (await attemptSignIn(app, { email: who, password: given, headers: { 'x-forwarded-for': network } })).status;

  async function block(network: string, who = email): Promise<void> {
    for (let count = 0; count < 8; count += 1) await tryFrom(network, 'Wrong-Horse-7!', who);
    expect(await tryFrom(network, password, who)).toBe(429);
  }

  it('200: the account signs in at once from every network, and others wait on (SESSION-10)', async () => {
    const networks = ['198.51.100.1', '198.51.100.2'];
    for (const network of networks) await block(network);
    await block('198.51.100.3', 'ada@example.com');
    const rows = (await app.audit()).length;
    expect(await admin.put(path)).toMatchObject({ status: 200, body: { message: expect.any(String) } });
    expect((await app.audit()).slice(rows)).toMatchObject([
      { action: 'sign-in.unblocked', actor_user_id: admin.userId, subject_id: member.userId },
    ]);
    for (const network of networks) expect(await tryFrom(network, password)).toBe(200);
    expect(await tryFrom('198.51.100.3', password, 'ada@example.com')).toBe(429);
  });

  it('200: what fails afterwards counts anew (SESSION-10)', async () => {
    app.clock.advance(day / 2);
    await block('198.51.100.9');
    app.clock.advance(1);
    expect((await (await admin.token({ scopes: ['org:admin'] })).put(path)).status).toBe(200);
    app.clock.advance(1);
    await block('198.51.100.9');
  });

  it('403 and 404: members, narrower tokens, unknown users (SESSION-10)', async () => {
    const token = await admin.token({ scopes: ['user:write'] });
    expect([(await member.put(path)).status, (await token.put(path)).status]).toEqual([403, 403]);
    expect((await admin.put(`/users/${'0'.repeat(24)}/unblock`)).status).toBe(404);
  });
});
