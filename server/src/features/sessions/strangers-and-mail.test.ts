import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { beginSignIn } from '../../../test/support/sign-in.ts';
import { codeIn, otherCode, SignInDesk } from '../../../test/support/sign-in-desk.ts';
import { day } from '../../base/clock.ts';
import { issueCode, tryCode } from '../codes/public.ts';

const email = 'ada@example.com';
const home = '198.51.100.7';
const otherHome = '198.51.100.8';
const stranger = '203.0.113.9';
const minute = 60_000;

let desk: SignInDesk;
beforeEach(async () => {
  desk = await SignInDesk.start({ RATE_LIMIT: 'on', TRUST_PROXY: '127.0.0.1' });
  for (const network of [home, otherHome]) {
    if ((await statusOf(network, 'password', 'Marble-Kettle-7')) !== 200) throw new Error('not signed in');
  }
  desk.mail.clear();
});
afterEach(() => desk.close());

async function statusOf(network: string, method: string, secret: string): Promise<number> {
  const headers = { 'x-forwarded-for': network, 'x-session-token': await beginSignIn(desk.app) };
  const body = { method, credentials: { [method]: secret }, email };
  return (await desk.app.anonymous.post('/userAccount/authenticate', body, { headers })).status;
}

/** Asks for a mail; returns the text of each that was sent. */
async function ask(network: string, path = '/userAccount/login/otp/generate'): Promise<string[]> {
  desk.mail.clear();
  const headers = { 'x-forwarded-for': network };
  expect((await desk.app.anonymous.post(path, { email }, { headers })).status).toBe(200);
  await desk.settled();
  return desk.mail.mailsTo(email).map(({ text }) => text);
}

async function codeFrom(network: string): Promise<string> {
  const [text = ''] = await ask(network);
  return codeIn({ text });
}

/** A network that tried nothing yet. */
let networks = 20;
function someStranger(): string {
  networks += 1;
  return `203.0.113.${networks}`;
}

async function guess(code: string, times: number, network?: string): Promise<void> {
  for (let tried = 1; tried <= times; tried += 1) {
    expect(await statusOf(network ?? someStranger(), 'otp', otherCode(code, tried))).toBe(401);
  }
}

describe('strangers who ask for codes and guess them', () => {
  it('use up neither the tries nor the mails of a network that the user signed in from (AUTH-42, AUTH-51)', async () => {
    const codes = [await codeFrom(stranger), await codeFrom(stranger), await codeFrom(stranger)];
    expect(await ask(stranger)).toEqual([]);
    const last = codes[2] ?? '';
    await guess(last, 5);
    expect(await statusOf(someStranger(), 'otp', last)).toBe(401);
    expect(await statusOf(home, 'otp', last)).toBe(200);
    const own = await codeFrom(home);
    expect(await statusOf(home, 'otp', own)).toBe(200);
  });

  it('leave the code of a known network as it is; one asked for there ends theirs (AUTH-51)', async () => {
    const theirs = await codeFrom(stranger);
    const [own, other] = [await codeFrom(home), await codeFrom(otherHome)];
    expect(await statusOf(home, 'otp', theirs)).toBe(401);
    await codeFrom(stranger);
    await guess(own, 5);
    expect(await statusOf(someStranger(), 'otp', own)).toBe(401);
    expect([await statusOf(home, 'otp', own), await statusOf(otherHome, 'otp', other)]).toEqual([200, 200]);
  });

  it('a code from a known network is taken from a new one, too (AUTH-42)', async () => {
    expect(await statusOf(stranger, 'otp', await codeFrom(home))).toBe(200);
  });

  it('each known network has five tries and three mails of its own, and no more (AUTH-42, AUTH-51)', async () => {
    const own = await codeFrom(home);
    for (let tried = 1; tried <= 5; tried += 1) {
      expect(await statusOf(home, 'otp', otherCode(own, tried))).toBe(401);
      desk.app.clock.advance(minute / 2);
    }
    expect(await statusOf(home, 'otp', own)).toBe(401);
    for (let asked = 2; asked <= 3; asked += 1) expect(await ask(home)).toHaveLength(1);
    expect([await ask(home), (await ask(otherHome)).length]).toEqual([[], 1]);
  });

  it('turn codes off for themselves alone by 30 wrong ones, and a known network for itself (AUTH-71)', async () => {
    const { services } = desk.app;
    const { userId } = await desk.app.signIn(email);
    const turnOff = async (address: string) => {
      let code = '';
      for (let tried = 0; tried < 30; tried += 1) {
        const issue = () => services.db.transaction((tx) => issueCode(tx, services, { userId, address, signIn: null }));
        if (tried % 5 === 0) code = (await issue()).expose();
        expect(await tryCode(services, userId, { given: otherCode(code), address, signIn: null })).toBeNull();
      }
    };
    await turnOff(someStranger());
    expect(await ask(someStranger())).toEqual([]);
    const own = await codeFrom(home);
    expect([await statusOf(someStranger(), 'otp', own), await statusOf(home, 'otp', own)]).toEqual([401, 200]);
    await turnOff(home);
    expect([await ask(home), (await ask(otherHome)).length]).toEqual([[], 1]);
    desk.app.clock.advance(day);
    expect(await ask(home)).toHaveLength(1);
  });
});

describe('strangers who ask for the recovery of a password', () => {
  const path = '/userAccount/password/forgot';

  it('do not use up the mails of a network that the user signed in from (PASSWORD-8)', async () => {
    for (let asked = 0; asked < 12; asked += 1) await ask(someStranger(), path);
    expect(await ask(stranger, path)).toEqual([]);
    for (const expected of [1, 1, 1, 0]) expect(await ask(home, path)).toHaveLength(expected);
    expect(await ask(otherHome, path)).toHaveLength(1);
  });
});

describe('PUT /users/:id/unblock', () => {
  it('200: mails go out again, and the last code may be tried again, from everywhere (SESSION-10)', async () => {
    const code = await codeFrom(stranger);
    for (let asked = 0; asked < 4; asked += 1) {
      for (const network of [stranger, home]) await ask(network, '/userAccount/password/forgot');
    }
    const own = [await codeFrom(home), await codeFrom(home), await codeFrom(home)][2] ?? '';
    expect(code).toMatch(/^\d{6}$/);
    await guess(own, 5);
    expect([await statusOf(stranger, 'otp', own), await ask(home)]).toEqual([401, []]);
    const admin = await desk.app.signIn(email);
    expect((await admin.put(`/users/${admin.userId}/unblock`)).status).toBe(200);
    expect(await statusOf(stranger, 'otp', own)).toBe(200);
    for (const network of [stranger, home]) {
      expect(await ask(network)).toHaveLength(1);
      expect(await ask(network, '/userAccount/password/forgot')).toHaveLength(1);
    }
  });
});
