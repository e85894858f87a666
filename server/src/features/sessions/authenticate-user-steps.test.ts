import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { tokenIn } from '../../../test/support/mail-server.ts';
import { claimsOf } from '../../../test/support/sign-in.ts';
import { otherCode, SignInDesk } from '../../../test/support/sign-in-desk.ts';
import { type Client, password } from '../../../test/support/test-app.ts';
import { hashCredential } from '../../base/secret.ts';
import { pruneSignIns } from '../sign-in/public.ts';

type Method = 'password' | 'otp' | 'oidc';
const issuer = 'https://provider.example.net';
const hour = 3_600_000;
const refused = { status: 401, body: { message: 'The credentials are not valid' } };
const signedIn = { status: 200, body: { message: 'Fully authenticated' } };

let desk: SignInDesk;
let users = 0;
let tickets = 0;
beforeAll(async () => {
  desk = await SignInDesk.start({
    BASE_URL: 'https://id.example.com',
    OIDC_ISSUER: issuer,
    OIDC_CLIENT_ID: 'latchkey',
    OIDC_CLIENT_SECRET: 'a-provider-knows-this-secret',
  });
  // An administrator has signed in by the provider: steps may depend on it (FIT-7).
  const nowMs = desk.app.clock.now();
  const identity = { issuer, subject: 'ada', user_id: desk.admin.userId, created_at: nowMs, signed_in_at: nowMs };
  await desk.app.services.db.transaction((tx) => tx.insertInto('external_identities').values(identity).execute());
});
afterAll(() => desk.close());

type User = Pick<Client, 'userId'> & { readonly email: string; readonly session: Client };

async function someUser(): Promise<User> {
  users += 1;
  const email = `some-${users}@example.com`;
  const session = await desk.app.member(desk.admin, email);
  return { email, userId: session.userId, session };
}

async function codeOf({ email }: Pick<User, 'email'>): Promise<readonly ['otp', string]> {
  return ['otp', await desk.codeFor(email)];
}

/** Returns a valid proof of a method; a ticket is fetched from the provider. */
async function proofOf(
  method: Method,
  { email, userId }: User,
  signInToken: string,
): Promise<readonly [Method, string]> {
  if (method === 'password') return [method, password];
  if (method === 'otp') return codeOf({ email });
  tickets += 1;
  const ticket = `lkt_${tickets}`.padEnd(47, 'x');
  const [hash, sign_in_id] = [hashCredential(ticket), claimsOf(signInToken).jti];
  const row = { hash, sign_in_id, user_id: userId, expires_at: desk.app.clock.now() + hour };
  await desk.app.services.db.transaction((tx) => tx.insertInto('sign_in_tickets').values(row).execute());
  return [method, ticket];
}

async function sessionsOf({ userId }: User): Promise<number> {
  const rows = desk.app.services.db.read.selectFrom('sessions').where('user_id', '=', userId).select('id');
  return (await rows.execute()).length;
}

describe('POST /userAccount/authenticate in several steps', () => {
  const orders: Method[][] = [
    ['password'],
    ['otp'],
    ['oidc'],
    ['password', 'otp'],
    ['otp', 'password'],
    ['oidc', 'password'],
    ['otp', 'oidc'],
    ['password', 'otp', 'oidc'],
    ['password', 'oidc', 'otp'],
    ['otp', 'password', 'oidc'],
    ['otp', 'oidc', 'password'],
    ['oidc', 'password', 'otp'],
    ['oidc', 'otp', 'password'],
  ];

  it.each(orders.map((order) => ({ order, named: order.join(', then ') })))(
    '200: $named (AUTH-5 to AUTH-8)',
    async ({ order }) => {
      await desk.setSteps(['password', 'otp']);
      const user = await someUser();
      const before = await sessionsOf(user);
      await desk.setSteps(...order.map((method) => [method]));
      const token = await desk.begin(user.email);
      const startUrl = `https://id.example.com/api/v1/userAccount/oidc/start?signIn=${claimsOf(token).jti}`;
      for (const [place, next] of order.slice(1).entries()) {
        const { status, body } = await desk.take(token, await proofOf(order[place] ?? next, user, token));
        expect(status).toBe(200);
        const authProviders = next === 'oidc' ? { oidc: { startUrl } } : {};
        expect(body).toEqual({ status: 'success', nextStep: place + 1, allowedMethods: [next], authProviders });
      }
      // A user with steps left has no session.
      expect(await sessionsOf(user)).toBe(before);
      const { status, body } = await desk.take(token, await proofOf(order.at(-1) ?? 'password', user, token));
      expect(status).toBe(200);
      expect(claimsOf(body.accessToken)).toMatchObject({ userId: user.userId, tokenType: 'session' });
      expect(await sessionsOf(user)).toBe(before + 1);
    },
  );
});

describe('POST /userAccount/authenticate in two steps, a password and a code', () => {
  let user: User;
  beforeEach(async () => {
    await desk.setSteps(['password', 'otp']);
    user = await someUser();
    await desk.setSteps(['password'], ['otp']);
  });

  /** Takes the first step; answers what the second takes. */
  async function halfWay(): Promise<{ token: string; code: readonly [string, string] }> {
    const token = await desk.begin(user.email);
    expect(await desk.take(token, ['password', password])).toMatchObject({ status: 200, body: { nextStep: 1 } });
    return { token, code: await codeOf(user) };
  }

  it('200: only the last step sets hasLoggedIn (AUTH-8, AUTH-11)', async () => {
    await desk.admin.put(`/users/${user.userId}`, { email: user.email, hasLoggedIn: false });
    const shown = async () => (await desk.admin.get(`/users/${user.userId}`)).body.hasLoggedIn;
    const { token, code } = await halfWay();
    expect(await shown()).toBe(false);
    expect(await desk.take(token, code)).toMatchObject(signedIn);
    expect(await shown()).toBe(true);
  });

  it('401: the wrong method for the step, which uses nothing up (AUTH-9, AUTH-10)', async () => {
    const code = await codeOf(user);
    const token = await desk.begin(user.email);
    expect(await desk.take(token, code)).toMatchObject(refused);
    expect((await desk.take(token, ['password', password])).status).toBe(200);
    expect(await desk.take(token, ['password', password])).toMatchObject(refused);
    expect(await desk.take(token, code)).toMatchObject(signedIn);
  });

  it('401: something wrong in the second step, which may be tried again (AUTH-8)', async () => {
    const { token, code } = await halfWay();
    expect(await desk.take(token, ['otp', otherCode(code[1])])).toMatchObject(refused);
    expect(await desk.take(token, code)).toMatchObject(signedIn);
  });

  it('401: the second step of another sign-in (AUTH-10)', async () => {
    const { code } = await halfWay();
    expect(await desk.take(await desk.begin(user.email), code)).toMatchObject(refused);
  });

  it('401: once through, the sign-in begins at its first step again (AUTH-10)', async () => {
    const { token, code } = await halfWay();
    expect(await desk.take(token, code)).toMatchObject(signedIn);
    expect(await desk.take(token, await codeOf(user))).toMatchObject(refused);
    expect((await desk.take(token, ['password', password])).body.nextStep).toBe(1);
  });

  it("401: another person's e-mail between the steps, named at the start or not (AUTH-10)", async () => {
    const other = { email: 'ada@example.com', userId: desk.admin.userId, session: desk.admin };
    for (const begunWith of [user.email, undefined]) {
      const token = await desk.begin(begunWith);
      expect((await desk.take(token, ['password', password], user.email)).status).toBe(200);
      expect(await desk.take(token, await codeOf(other), other.email)).toMatchObject(refused);
      expect(await desk.take(token, await codeOf(user), user.email)).toMatchObject(signedIn);
    }
  });

  it('401: the steps were changed meanwhile, if only to the same again (AUTH-10, AUTH-46)', async () => {
    for (const steps of [
      [['password'], ['otp']],
      [['password'], ['oidc'], ['otp']],
    ] as Method[][][]) {
      const { token, code } = await halfWay();
      await desk.setSteps(...steps);
      expect(await desk.take(token, code)).toMatchObject(refused);
      await desk.setSteps(['password'], ['otp']);
    }
  });

  it('401: the person was deleted meanwhile, also once restored (AUTH-10, AUTH-40)', async () => {
    const { token, code } = await halfWay();
    await desk.admin.delete(`/users/${user.userId}`);
    expect(await desk.take(token, code)).toMatchObject(refused);
    await desk.admin.post(`/users/${user.userId}/restore`);
    expect(await desk.take(token, code)).toMatchObject(refused);
    expect(await desk.take(token, await codeOf(user))).toMatchObject(refused);
  });

  it('401: the password was changed meanwhile, by its owner or with a link (AUTH-10)', async () => {
    const newPassword = 'Another-Horse-8';
    const first = await halfWay();
    const change = { currentPassword: password, newPassword };
    expect((await user.session.post('/userAccount/password/reset', change)).status).toBe(200);
    expect(await desk.take(first.token, first.code)).toMatchObject(refused);

    const token = await desk.begin(user.email);
    expect((await desk.take(token, ['password', newPassword])).status).toBe(200);
    desk.mail.clear();
    await desk.app.anonymous.post('/userAccount/password/forgot', { email: user.email });
    const link = desk.app.with(tokenIn(await desk.mail.mailTo(user.email)));
    expect((await link.post('/userAccount/password/reset/token', { password })).status).toBe(200);
    expect(await desk.take(token, await codeOf(user))).toMatchObject(refused);
  });

  it('401: an hour after the beginning, however late the first step was (AUTH-3, FIT-81)', async () => {
    desk.app.clock.set(Math.floor(desk.app.clock.now() / 1_000) * 1_000);
    const token = await desk.begin(user.email);
    desk.app.clock.advance(hour - 1_000);
    expect((await desk.take(token, ['password', password])).status).toBe(200);
    const code = await codeOf(user);
    desk.app.clock.advance(999);
    expect(await desk.take(token, ['otp', otherCode(code[1])])).toMatchObject(refused);
    desk.app.clock.advance(1);
    const late = await desk.take(token, code);
    expect(late.status).toBe(401);
    expect(late.body.message).toBe('Invalid session: sign-in has not begun or took too long');
  });

  it('what was begun and not ended is forgotten after its time (AUTH-3)', async () => {
    const rows = () => desk.app.services.db.read.selectFrom('sign_in_progress').selectAll().execute();
    await halfWay();
    expect((await rows()).length).toBeGreaterThan(0);
    desk.app.clock.advance(hour);
    expect(await pruneSignIns(desk.app.services)).toBeGreaterThan(0);
    expect(await rows()).toEqual([]);
  });
});
