import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { claimsOf, neutral } from '../../../test/support/sign-in.ts';
import { otherCode, SignInDesk } from '../../../test/support/sign-in-desk.ts';
import { type Json, password, TestApp } from '../../../test/support/test-app.ts';

const path = '/userAccount/login/otp/generate';
const minute = 60_000;
const message =
  'If this e-mail address has an account, we send it a mail with a code. If none arrives within ten minutes, ask again';
const refused = { status: 401, body: { message: 'The credentials are not valid' } };

let desk: SignInDesk;
beforeAll(async () => {
  desk = await SignInDesk.start();
});
afterAll(() => desk.close());

let users = 0;

/** Creates a user who has had no code yet. */
async function someUser(): Promise<{ email: string; userId: string }> {
  users += 1;
  const email = `some-${users}@example.com`;
  const { body } = await desk.admin.post('/users', { fullName: 'Some Body', email });
  return { email, userId: body._id };
}

describe('POST /userAccount/login/otp/generate', () => {
  it('200: a code of six digits goes to the person and signs in, once (AUTH-7, AUTH-41, AUTH-42)', async () => {
    const { email, userId } = await someUser();
    expect(await desk.askForCode(` ${email.toUpperCase()}`)).toMatchObject({ status: 200, body: { message } });
    const [letter, ...others] = desk.mail.mailsTo(email);
    expect(others).toEqual([]);
    expect(letter?.subject).toBe('Your sign-in code for Example Ltd');
    const code = await desk.codeFor(email);
    expect(code).toMatch(/^\d{6}$/);
    const { status, body } = await desk.signIn(email, 'otp', code);
    expect(status).toBe(200);
    expect(body.message).toBe('Fully authenticated');
    expect(claimsOf(body.accessToken)).toMatchObject({ userId, email });
    expect(await desk.signIn(email, 'otp', code)).toMatchObject(refused);
  });

  it('200: the first code that signs in sets hasLoggedIn, a wrong one does not (AUTH-11)', async () => {
    const { email, userId } = await someUser();
    const code = await desk.codeFor(email);
    const shown = async () => (await desk.admin.get(`/users/${userId}`)).body.hasLoggedIn;
    await desk.signIn(email, 'otp', otherCode(code));
    expect(await shown()).toBe(false);
    await desk.signIn(email, 'otp', code);
    expect(await shown()).toBe(true);
  });

  it('200: the same for all addresses, and a mail for anyone who is here alone (AUTH-41)', async () => {
    const [here, gone] = [await someUser(), await someUser()];
    await desk.admin.delete(`/users/${gone.userId}`);
    desk.mail.clear();
    const requested = (await desk.app.audit()).length;
    for (const email of [here.email, gone.email, 'eve@example.com']) {
      const { status, body, headers } = await desk.askForCode(email);
      expect({ status, body }).toEqual({ status: 200, body: { message } });
      expect(headers.get('cache-control')).toBe('no-store');
    }
    expect(desk.mail.mails.flatMap(({ to }) => to)).toEqual([here.email]);
    const rows = (await desk.app.audit()).slice(requested);
    expect(rows).toMatchObject([{ action: 'code.requested', subject_id: here.userId, actor_user_id: null }]);
  });

  it('401 from the moment that 10 minutes are over (AUTH-42)', async () => {
    for (const [waitMs, status] of [
      [10 * minute - 1, 200],
      [10 * minute, 401],
    ] as const) {
      const { email } = await someUser();
      const code = await desk.codeFor(email);
      desk.app.clock.advance(waitMs);
      expect([waitMs, (await desk.signIn(email, 'otp', code)).status]).toEqual([waitMs, status]);
    }
  });

  it('401: the right code after five wrong ones, and after four it is taken (AUTH-42)', async () => {
    for (const [wrong, status] of [
      [4, 200],
      [5, 401],
    ] as const) {
      const { email } = await someUser();
      const code = await desk.codeFor(email);
      for (let tried = 1; tried <= wrong; tried += 1) {
        expect(await desk.signIn(email, 'otp', otherCode(code, tried))).toMatchObject(refused);
      }
      expect([wrong, (await desk.signIn(email, 'otp', code)).status]).toEqual([wrong, status]);
    }
  });

  it('200: a new code has its own tries, and the one before is dead (AUTH-42, AUTH-51)', async () => {
    const { email } = await someUser();
    const first = await desk.codeFor(email);
    for (let tried = 1; tried <= 5; tried += 1) await desk.signIn(email, 'otp', otherCode(first, tried));
    const second = await desk.codeFor(email);
    // Of a million codes the second is now and then the first again.
    const dead = second === first ? otherCode(second) : first;
    expect(await desk.signIn(email, 'otp', dead)).toMatchObject(refused);
    expect((await desk.signIn(email, 'otp', second)).status).toBe(200);
  });

  it('401: what is no code at all, which uses no try (AUTH-9, AUTH-42)', async () => {
    const { email } = await someUser();
    const code = await desk.codeFor(email);
    const fullWidth = [...code].map((digit) => String.fromCodePoint(0xff10 + Number(digit))).join('');
    for (const given of ['', code.slice(1), `${code}0`, ` ${code}`, `${code}\n`, fullWidth, 'abcdef', '0x1234']) {
      expect(await desk.signIn(email, 'otp', given), given).toMatchObject(refused);
    }
    expect((await desk.signIn(email, 'otp', code)).status).toBe(200);
  });

  it("401: someone else's code, which uses no try of its owner's up (AUTH-9)", async () => {
    const [one, other] = [await someUser(), await someUser()];
    const code = await desk.codeFor(one.email);
    await desk.codeFor(other.email);
    await desk.signIn(other.email, 'otp', code);
    expect((await desk.signIn(one.email, 'otp', code)).status).toBe(200);
  });

  it('401: dies with the person, and does not come back with a restoration (AUTH-40, AUTH-51)', async () => {
    const { email, userId } = await someUser();
    const code = await desk.codeFor(email);
    await desk.admin.delete(`/users/${userId}`);
    expect(await desk.signIn(email, 'otp', code)).toMatchObject(refused);
    expect((await desk.admin.post(`/users/${userId}/restore`)).status).toBe(200);
    expect(await desk.signIn(email, 'otp', code)).toMatchObject(refused);
    expect((await desk.signIn(email, 'otp', await desk.codeFor(email))).status).toBe(200);
  });

  it('200: goes to the address of before while one that a token set is not confirmed, by either name (AUTH-49)', async () => {
    const member = await desk.app.member(desk.admin, 'before@example.com');
    const token = await member.token();
    expect((await token.patch(`/users/${member.userId}/email`, { email: 'after@example.com' })).status).toBe(200);
    await desk.settled();
    desk.mail.clear();
    for (const named of ['before@example.com', 'after@example.com']) {
      const code = await desk.codeFor(named, 'before@example.com');
      expect(desk.mail.mailsTo('after@example.com')).toEqual([]);
      expect(await desk.signIn('before@example.com', 'otp', code)).toMatchObject(refused);
      expect((await desk.signIn('after@example.com', 'otp', code)).status).toBe(200);
    }
    const confirming = { userId: member.userId };
    expect((await desk.admin.post('/userAccount/email/confirm', confirming)).status).toBe(200);
    desk.mail.clear();
    await desk.askForCode('before@example.com');
    expect(desk.mail.mails).toEqual([]);
    const code = await desk.codeFor('after@example.com');
    expect((await desk.signIn('after@example.com', 'otp', code)).status).toBe(200);
  });

  it('400: an address that is none (ERR-10)', async () => {
    for (const body of [undefined, {}, { email: 'nobody' }, { email: 7 }, { email: ['ada@example.com'] }]) {
      expect((await desk.app.anonymous.post(path, body)).status, JSON.stringify(body)).toBe(400);
    }
  });

  it('the log and the audit log hold no code (AUDIT-8, PASSWORD-6)', async () => {
    const { email } = await someUser();
    const code = await desk.codeFor(email);
    await desk.signIn(email, 'otp', otherCode(code));
    await desk.signIn(email, 'otp', code);
    const written = new RegExp(`(?<![0-9a-f])${code}(?![0-9a-f])`);
    expect(desk.app.logLines.filter((line) => written.test(line))).toEqual([]);
    expect((await desk.app.audit()).filter((row) => written.test(JSON.stringify(row)))).toEqual([]);
  });
});

describe('POST /userAccount/login/otp/generate where codes are of no use', () => {
  afterEach(() => desk.setSteps(['password', 'otp']));

  it('200 without a mail while no one signs in by codes; an earlier code is dead meanwhile (AUTH-10, AUTH-41)', async () => {
    const { email } = await someUser();
    const code = await desk.codeFor(email);
    await desk.setSteps(['password']);
    desk.mail.clear();
    expect(await desk.askForCode(email)).toMatchObject({ status: 200, body: { message } });
    expect(desk.mail.mails).toEqual([]);
    expect(await desk.signIn(email, 'otp', code)).toMatchObject(refused);
  });

  it('200 without a code while mail is not configured, or before there is an organization (AUTH-41)', async () => {
    const app = await TestApp.start();
    try {
      const early = await app.anonymous.post(path, { email: 'ada@example.com' });
      await app.setUp();
      const later = await app.anonymous.post(path, { email: 'ada@example.com' });
      for (const response of [early, later]) expect(response).toMatchObject({ status: 200, body: { message } });
      await app.services.afterResponse.close();
      expect(await app.services.db.read.selectFrom('mailed_codes').selectAll().execute()).toEqual([]);
    } finally {
      await app.close();
    }
  });
});

describe('every way of being wrong at signing in by code or password', () => {
  it('401: one status and one text (AUTH-9)', async () => {
    const used = await someUser();
    const usedCode = await desk.codeFor(used.email);
    await desk.signIn(used.email, 'otp', usedCode);
    const [none, old, replaced, worn, gone] = await Promise.all(Array.from({ length: 5 }, someUser));
    if (!none || !old || !replaced || !worn || !gone) throw new Error('nobody is there');
    const oldCode = await desk.codeFor(old.email);
    desk.app.clock.advance(10 * minute);
    const replacedCode = await desk.codeFor(replaced.email);
    const newer = await desk.codeFor(replaced.email);
    const wornCode = await desk.codeFor(worn.email);
    for (let tried = 1; tried <= 5; tried += 1) await desk.signIn(worn.email, 'otp', otherCode(wornCode, tried));
    const goneCode = await desk.codeFor(gone.email);
    await desk.admin.delete(`/users/${gone.userId}`);
    const ways: [string, string, string][] = [
      ['eve@example.com', 'otp', '123456'],
      ['eve@example.com', 'password', password],
      [none.email, 'otp', '123456'],
      [none.email, 'password', password],
      [used.email, 'otp', usedCode],
      [old.email, 'otp', oldCode],
      [replaced.email, 'otp', replacedCode === newer ? otherCode(newer) : replacedCode],
      [worn.email, 'otp', wornCode],
      [gone.email, 'otp', goneCode],
      ['ada@example.com', 'password', `${password}x`],
      ['ada@example.com', 'oidc', 'x'],
      ['ada@example.com', 'OTP', '123456'],
    ];
    const responses: Json[] = [];
    for (const way of ways) responses.push(neutral(await desk.signIn(...way)));
    const text = 'The credentials are not valid';
    const same = { status: 401, body: { message: text, error: { code: 'UNAUTHORIZED', message: text } } };
    expect(responses).toEqual(ways.map(() => same));
  });
});
