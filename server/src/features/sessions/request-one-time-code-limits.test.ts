import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { otherCode, SignInDesk } from '../../../test/support/sign-in-desk.ts';
import type { TestResponse } from '../../../test/support/test-app.ts';

const minute = 60_000;
const email = 'ada@example.com';

let desk: SignInDesk;
beforeEach(async () => {
  desk = await SignInDesk.start({ RATE_LIMIT: 'on', TRUST_PROXY: '127.0.0.1' });
});
afterEach(() => desk.close());

function from(address: string) {
  return { 'x-forwarded-for': address };
}

/** Tries to sign in from an address. */
async function tryFrom(address: string, method: string, secret: string): Promise<TestResponse> {
  const headers = { ...from(address), 'x-session-token': await desk.begin(email) };
  const body = { method, credentials: { [method]: secret } };
  return desk.app.anonymous.post('/userAccount/authenticate', body, { headers });
}

describe('POST /userAccount/login/otp/generate with RATE_LIMIT on', () => {
  it('200 without a mail: the fourth within 10 minutes of the first; the third still works (AUTH-51)', async () => {
    const { clock } = desk.app;
    await desk.codeFor(email);
    clock.advance(5 * minute);
    await desk.codeFor(email);
    const third = await desk.codeFor(email);
    clock.advance(5 * minute - 1);
    desk.mail.clear();
    const { status, body } = await desk.askForCode(email);
    expect({ status, body }).toEqual({ status: 200, body: (await desk.askForCode('eve@example.com')).body });
    expect(desk.mail.mails).toEqual([]);
    expect((await desk.signIn(email, 'otp', third)).status).toBe(200);
    clock.advance(1);
    expect((await desk.signIn(email, 'otp', await desk.codeFor(email))).status).toBe(200);
  });

  it("200: who has had too many holds no one else's back (AUTH-51)", async () => {
    await desk.admin.post('/users', { fullName: 'Grace Hopper', email: 'grace@example.com' });
    for (let asked = 0; asked < 4; asked += 1) await desk.askForCode(email);
    expect(desk.mail.mailsTo(email)).toHaveLength(3);
    expect(await desk.codeFor('grace@example.com')).toMatch(/^\d{6}$/);
  });

  it('429: after 60 in a minute from one network, known address or not; others go on (ERR-24)', async () => {
    const ask = (address: string, place: number) =>
      desk.app.anonymous.post(
        '/userAccount/login/otp/generate',
        { email: place % 2 === 0 ? email : 'eve@example.com' },
        { headers: from(address) },
      );
    const responses = await Promise.all(Array.from({ length: 64 }, (_, place) => ask('198.51.100.7', place)));
    await desk.settled();
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(60);
    const refused = responses.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(4);
    expect(Number(refused[0]?.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await ask('198.51.100.8', 0)).status).toBe(200);
  });
});

describe('wrong codes slow further ones down', () => {
  it('429: like wrong passwords and together with them, and only from there (AUTH-43, AUTH-44)', async () => {
    const code = await desk.codeFor(email);
    for (let tried = 1; tried <= 3; tried += 1) {
      expect((await tryFrom('198.51.100.7', 'otp', otherCode(code, tried))).status).toBe(401);
    }
    for (let tried = 1; tried <= 2; tried += 1) {
      expect((await tryFrom('198.51.100.7', 'password', 'Wrong-Horse-7')).status).toBe(401);
    }
    const refused = await tryFrom('198.51.100.7', 'otp', code);
    expect(refused).toMatchObject({ status: 429, body: { error: { code: 'RATE_LIMITED' } } });
    const until = new Date(desk.app.clock.now() + 1_000).toISOString();
    expect(refused.body.message).toContain(`[blockedUntil:${until}]`);
    expect((await tryFrom('203.0.113.9', 'otp', code)).status).toBe(200);
  });

  it('401 while one waits uses no try of the code up: the refusal comes first (AUTH-42, AUTH-44)', async () => {
    const code = await desk.codeFor(email);
    for (let tried = 1; tried <= 5; tried += 1) await tryFrom('198.51.100.7', 'password', 'Wrong-Horse-7');
    for (let tried = 1; tried <= 5; tried += 1) {
      expect((await tryFrom('198.51.100.7', 'otp', otherCode(code, tried))).status).toBe(429);
    }
    expect((await tryFrom('203.0.113.9', 'otp', code)).status).toBe(200);
  });

  it('429: one step of several forgives no failures at the next (AUTH-43)', async () => {
    await desk.setSteps(['password'], ['otp']);
    const code = await desk.codeFor(email);
    const address = '198.51.100.7';
    const password = 'Marble-Kettle-7';
    const step = async (token: string, method: string, secret: string) => {
      const headers = { ...from(address), 'x-session-token': token };
      const body = { method, credentials: { [method]: secret } };
      return (await desk.app.anonymous.post('/userAccount/authenticate', body, { headers })).status;
    };
    const statuses: number[] = [];
    for (let tried = 1; tried <= 5; tried += 1) {
      const token = await desk.begin(email);
      statuses.push(await step(token, 'password', password), await step(token, 'otp', otherCode(code, tried)));
    }
    expect(statuses).toEqual([200, 401, 200, 401, 200, 401, 200, 401, 200, 401]);
    expect(await step(await desk.begin(email), 'password', password)).toBe(429);
  });
});
