import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { holdNext } from '../../../test/support/gates.ts';
import { tokenIn } from '../../../test/support/mail-server.ts';
import { chosen, forget } from '../../../test/support/recovery.ts';
import { SignInDesk } from '../../../test/support/sign-in-desk.ts';
import { type Client, password } from '../../../test/support/test-app.ts';

describe('what was proved before something changed', () => {
  let desk: SignInDesk;
  let count = 0;
  beforeAll(async () => {
    desk = await SignInDesk.start();
  });
  afterAll(() => desk.close());
  afterEach(() => desk.setSteps(['password', 'otp']));

  async function newUser() {
    count += 1;
    const email = `grace${count}@example.com`;
    const grace = await desk.app.member(desk.admin, email);
    return { email, grace };
  }

  const take = (token: string, method: string, secret: string) => {
    const body = { method, credentials: { [method]: secret } };
    return desk.app.anonymous.post('/userAccount/authenticate', body, { headers: { 'x-session-token': token } });
  };

  async function takeFirstOfTwo(email: string): Promise<string> {
    const token = await desk.begin(email);
    expect((await take(token, 'password', password)).body).toMatchObject({ status: 'success', nextStep: 1 });
    return token;
  }

  it.each<[string, (grace: Client, email: string) => Promise<unknown>]>([
    [
      'changed',
      (grace) => grace.post('/userAccount/password/reset', { currentPassword: password, newPassword: chosen }),
    ],
    [
      'reset by a link',
      async (_, email) => {
        desk.mail.clear();
        await forget(desk.app, email);
        const link = tokenIn(await desk.mail.mailTo(email));
        await desk.app.with(link).post('/userAccount/password/reset/token', { password: chosen });
      },
    ],
  ])(
    '401: a step that was taken by a password counts no longer once that is %s (AUTH-8, AUTH-10)',
    async (_, change) => {
      const { email, grace } = await newUser();
      await desk.setSteps(['password'], ['otp']);
      const [lasting, token] = [await takeFirstOfTwo(email), await takeFirstOfTwo(email)];
      expect((await take(lasting, 'otp', await desk.codeFor(email))).status).toBe(200);
      await change(grace, email);
      expect((await take(token, 'otp', await desk.codeFor(email))).status).toBe(401);
    },
  );

  it.each<[string, ('password' | 'otp')[][], (email: string) => Promise<string>]>([
    ['the only step', [['password', 'otp']], (email) => desk.begin(email)],
    ['the first of two', [['password'], ['otp']], (email) => desk.begin(email)],
  ])('401: the steps are changed while %s is judged (AUTH-10, AUTH-46)', async (_, steps, begin) => {
    const { email } = await newUser();
    await desk.setSteps(...steps);
    const judge = async (between: () => Promise<unknown>) => {
      const token = await begin(email);
      const gate = holdNext(desk.app.services.db, 'transaction');
      const taken = take(token, 'password', password);
      await gate.arrived;
      await between();
      gate.open();
      return (await taken).status;
    };
    // The gate itself changes nothing.
    expect(await judge(async () => {})).toBe(200);
    expect(await judge(() => desk.setSteps(['otp'], ['password']))).toBe(401);
  });

  it('401: a code that was mailed before the address was changed, or confirmed (AUTH-42, AUTH-49)', async () => {
    const { email, grace } = await newUser();
    const moved = `moved-${email}`;
    const early = await desk.codeFor(email);
    expect((await desk.admin.patch(`/users/${grace.userId}/email`, { email: moved })).status).toBe(200);
    expect((await desk.signIn(moved, 'otp', early)).status).toBe(401);

    const token = await grace.token({ scopes: ['user:write'] });
    expect((await token.patch(`/users/${grace.userId}/email`, { email })).status).toBe(200);
    const toEarlier = await desk.codeFor(email, moved);
    const { userId } = grace;
    expect((await desk.admin.post('/userAccount/email/confirm', { userId })).status).toBe(200);
    expect((await desk.signIn(email, 'otp', toEarlier)).status).toBe(401);
    expect((await desk.signIn(email, 'otp', await desk.codeFor(email))).status).toBe(200);
  });
});
