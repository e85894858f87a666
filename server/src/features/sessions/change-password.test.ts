import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MailServer } from '../../../test/support/mail-server.ts';
import {
  chosen,
  gone,
  mailedToken,
  opens,
  resetWith,
  signedOut,
  startWithMail,
} from '../../../test/support/recovery.ts';
import { attemptSignIn, claimsOf, neutral } from '../../../test/support/sign-in.ts';
import { stepsOf } from '../../../test/support/sign-in-desk.ts';
import { type Client, type Json, password, type TestApp, type TestResponse } from '../../../test/support/test-app.ts';
import { day } from '../../base/clock.ts';

const path = '/userAccount/password/reset';
const email = 'grace@example.com';
const wrong = 'Wrong-Horse-7';

describe('POST /userAccount/password/reset', () => {
  let mails: MailServer;
  let app: TestApp;
  let admin: Client;
  let member: Client;

  beforeEach(async () => {
    mails = await MailServer.start();
    await start();
  });
  afterEach(async () => {
    await app.close();
    await mails.stop();
  });

  async function start(environment: Readonly<Record<string, string>> = {}): Promise<void> {
    app = await startWithMail(mails, environment);
    admin = await app.setUp();
    member = await app.member(admin, email);
    app.keepSecret(chosen);
  }
  const change = (who: Client, body: Json = {}, headers: Readonly<Record<string, string>> = {}) =>
    who.post(path, { currentPassword: password, newPassword: chosen, ...body }, { headers });

  it('200: the new password opens, the old one no longer (SESSION-1)', async () => {
    const before = (await admin.get(`/users/${member.userId}`)).body;
    app.clock.advance(1_000);
    expect(await change(member)).toMatchObject({
      status: 200,
      body: { data: 'password reset', accessToken: expect.stringMatching(/^eyJ/), refreshToken: expect.any(String) },
    });
    expect([await opens(app, email, chosen), await opens(app, email, password)]).toEqual([true, false]);
    expect((await admin.get(`/users/${member.userId}`)).body).toEqual(before);
    expect(await opens(app, 'ada@example.com', password)).toBe(true);
  });

  it('200: every session ends, this one too, and a new one begins; tokens and other people go on (ERR-29, SESSION-1)', async () => {
    const [mine, other] = [(await app.signInTokens(email)).body, (await app.signInTokens(email)).body];
    const { body: replaced } = await app.with(mine.refreshToken).post('/userAccount/refresh/token');
    const token = await member.token();
    app.clock.advance(5_000);
    const { body } = await change(app.with(replaced.accessToken));
    const claims = claimsOf(body.accessToken);
    expect(claims).toMatchObject({ userId: member.userId, email, tokenType: 'session' });
    expect(claims.exp - claims.iat).toBe(24 * 3_600);
    for (const { accessToken, refreshToken } of [mine, replaced, other]) {
      expect(await app.with(accessToken).get('/org')).toMatchObject(signedOut);
      // The first of them within the ten seconds in which it would have answered the same pair.
      expect(await app.with(refreshToken).post('/userAccount/refresh/token')).toMatchObject(signedOut);
    }
    expect(await member.get('/org')).toMatchObject(signedOut);
    for (const client of [app.with(body.accessToken), token, admin]) {
      expect((await client.get('/org')).status).toBe(200);
    }
    const refreshed = await app.with(body.refreshToken).post('/userAccount/refresh/token');
    expect(refreshed.status).toBe(200);
    const { sessions } = (await app.with(refreshed.body.accessToken).get('/userAccount/sessions')).body;
    expect(sessions).toMatchObject([{ isCurrent: true, createdAt: new Date(app.clock.now()).toISOString() }]);
  });

  it('200: with revokeTokens the tokens end too, with those that they made, and of no one else (SESSION-2)', async () => {
    const own = await member.token({ scopes: ['token:write', 'org:read'] });
    const child = await own.token({ scopes: ['org:read'] });
    const others = await admin.token();
    const before = (await app.audit()).length;
    expect((await change(member, { revokeTokens: true })).status).toBe(200);
    const revoked = { status: 401, body: { error: { code: 'TOKEN_REVOKED' } } };
    for (const client of [own, child]) expect(await client.get('/org')).toMatchObject(revoked);
    expect((await others.get('/org')).status).toBe(200);
    const rows = (await app.audit()).slice(before);
    expect(rows.map(({ action }) => action)).toEqual([
      'token.revoked',
      'token.revoked',
      'password.changed',
      'session.started',
    ]);
    expect(rows[2]).toMatchObject({ details: { revokedTokens: 2 } });
    expect(
      (await change(app.with((await app.signInTokens(email, chosen)).body.accessToken), { revokeTokens: 'yes' }))
        .status,
    ).toBe(400);
  });

  it('200: a session of two steps does not begin its 90 days anew by a password alone (SESSION-4)', async () => {
    const { body: first } = await app.signInTokens(email);
    app.clock.advance(29 * day);
    const { body: later } = await app.with(first.refreshToken).post('/userAccount/refresh/token');
    admin = await app.signIn('ada@example.com');
    await admin.post('/orgAuthConfig/updateAuthMethod', { authMethod: stepsOf(['password'], ['otp']) });
    const { body: next } = await change(app.with(later.accessToken));
    const session = (await app.with(next.accessToken).get('/userAccount/sessions')).body.sessions[0];
    expect(session).toMatchObject({ isCurrent: true, createdAt: new Date(app.clock.now() - 29 * day).toISOString() });
    // It went through one step, and ends as it would have before.
    expect(await app.with(next.refreshToken).post('/userAccount/refresh/token')).toMatchObject(signedOut);
  });

  it('200: the owner gets a notice, which says what became of the tokens (SESSION-11)', async () => {
    const fresh = app.with((await change(member)).body.accessToken);
    expect(await mails.noticeTo(email)).toMatchObject({
      subject: 'Your password at Example Ltd was changed',
      text: expect.stringContaining('still work'),
    });
    mails.clear();
    await change(fresh, { currentPassword: chosen, newPassword: password, revokeTokens: true });
    expect((await mails.noticeTo(email)).text).toContain('were revoked');
  });

  it('200: open links end (LINK-3)', async () => {
    const link = await mailedToken({ app, mails }, email);
    const others = await mailedToken({ app, mails }, 'ada@example.com');
    await change(member);
    expect(await resetWith(app, link, 'Another-Horse-9')).toMatchObject(gone);
    expect(await opens(app, email, chosen)).toBe(true);
    expect((await resetWith(app, others, 'Another-Horse-9')).status).toBe(200);
  });

  it('200: one row of the audit log, as for each wrong password, which tells nothing of either (AUDIT-1, AUDIT-9)', async () => {
    const before = (await app.audit()).length;
    await change(member, { currentPassword: wrong });
    await change(member);
    const same = { action: 'password.changed', actor_user_id: member.userId, subject_id: member.userId };
    const changes = { password: { before: '[secret]', after: '[secret]' } };
    expect((await app.audit()).slice(before)).toMatchObject([
      { ...same, outcome: 'failure', details: { reason: 'wrong-password' }, changes: {}, network: '127.0.0.1' },
      { ...same, outcome: 'success', details: {}, changes, network: '127.0.0.1' },
      { action: 'session.started' },
    ]);
  });

  it('200: the same password again is a change too, with a hash of its own (PASSWORD-4, SESSION-1)', async () => {
    const hash = () =>
      app.services.db.read
        .selectFrom('password_credentials')
        .where('user_id', '=', member.userId)
        .select('password_hash')
        .executeTakeFirstOrThrow();
    const before = await hash();
    expect((await change(member, { newPassword: password })).status).toBe(200);
    expect(await hash()).not.toEqual(before);
    expect(await opens(app, email, password)).toBe(true);
  });

  it('200: the present password is taken composed or decomposed (PASSWORD-4)', async () => {
    const given = 'Ångström-7é'.normalize('NFC');
    const fresh = app.with((await change(member, { newPassword: given })).body.accessToken);
    const again = await change(fresh, { currentPassword: given.normalize('NFD') });
    expect(again.status).toBe(200);
  });

  it('401: a wrong present password is the 401 of signing in, and changes nothing (AUTH-9, SESSION-1)', async () => {
    const link = await mailedToken({ app, mails }, email);
    const refused = await change(member, { currentPassword: wrong });
    const signIn = await attemptSignIn(app, { email, password: wrong });
    expect(neutral(refused)).toEqual(neutral(signIn));
    expect(refused.headers.get('www-authenticate')).toBe(signIn.headers.get('www-authenticate'));
    expect((await member.get('/org')).status).toBe(200);
    expect(await opens(app, email, password)).toBe(true);
    expect((await resetWith(app, link)).status).toBe(200);
  });

  it('401: anyone who has no password cannot make one up (AUTH-9, SESSION-1)', async () => {
    await app.services.db.transaction((tx) =>
      tx.deleteFrom('password_credentials').where('user_id', '=', member.userId).execute(),
    );
    for (const currentPassword of [password, '', 'null']) {
      expect(neutral(await change(member, { currentPassword }))).toEqual(
        neutral(await attemptSignIn(app, { email, password: wrong })),
      );
    }
  });

  it('401: no one, and every credential that is no session of a person (AUTH-19, AUTH-28)', async () => {
    const { refreshToken } = (await app.signInTokens(email)).body;
    const link = await mailedToken({ app, mails }, email);
    for (const who of [app.anonymous, app.service(['USER_LOOKUP']), app.with(refreshToken), app.with(link)]) {
      expect((await change(who)).status).toBe(401);
    }
    expect(await opens(app, email, password)).toBe(true);
  });

  it('403: a personal access token, whatever its scopes and whatever it sends (AUTH-32, HTTP-4)', async () => {
    const token = await member.token();
    for (const body of [{}, { currentPassword: wrong }, { newPassword: 'weak' }, { newPassword: 7 }]) {
      expect(await change(token, body)).toMatchObject({ status: 403, body: { error: { code: 'FORBIDDEN' } } });
    }
    expect(await opens(app, email, password)).toBe(true);
  });

  it('400: a password that the rules forbid, or none, before the present one is looked at (PASSWORD-1 to PASSWORD-3, PASSWORD-20)', async () => {
    const bodies = [
      { newPassword: 'Aa1!aaa' },
      { newPassword: 'Password1!' },
      { newPassword: 'Hopper-Grace-1' },
      { newPassword: 'Aa1aaaaa' },
      { newPassword: 'P@ssw0rd' },
      { newPassword: `Aa1!${'x'.repeat(1_021)}` },
      { newPassword: `${chosen}\0` },
      { newPassword: null },
      { newPassword: [chosen] },
      { currentPassword: null },
      { currentPassword: { $ne: '' } },
      { currentPassword: 'x'.repeat(4_097) },
      { currentPassword: undefined },
    ];
    for (const body of bodies) {
      for (const currentPassword of [password, wrong]) {
        const { status, body: told } = await change(member, { currentPassword, ...body });
        expect([status, told.error.code], JSON.stringify(body).slice(0, 60)).toEqual([400, 'VALIDATION_ERROR']);
      }
    }
    expect(await opens(app, email, password)).toBe(true);
  });

  it('never acts on anyone but the caller, whatever the body names (SESSION-1)', async () => {
    const { userId } = admin;
    const named = { userId, _id: userId, email: 'ada@example.com', orgId: 'f'.repeat(24) };
    expect((await change(member, named)).status).toBe(200);
    expect(await opens(app, 'ada@example.com', password)).toBe(true);
    expect(await opens(app, email, chosen)).toBe(true);
  });

  describe('slows guesses down (AUTH-43, AUTH-44)', () => {
    beforeEach(async () => {
      await app.close();
      await start({ RATE_LIMIT: 'on', TRUST_PROXY: '127.0.0.1' });
    });
    const from = (address: string) => ({ 'x-forwarded-for': address });
    const guess = (address: string, currentPassword = wrong) => change(member, { currentPassword }, from(address));
    const signIn = (address: string, given: string): Promise<TestResponse> =>
      attemptSignIn(app, { email, password: given, headers: from(address) });

    it('429 after five, for the right password too, and at the sign-in as well', async () => {
      for (let count = 0; count < 5; count += 1) expect((await guess('198.51.100.7')).status).toBe(401);
      const refused = await guess('198.51.100.7', password);
      expect(refused).toMatchObject({ status: 429, body: { error: { code: 'RATE_LIMITED' } } });
      expect(refused.body.message).toContain(`[blockedUntil:${new Date(app.clock.now() + 1_000).toISOString()}]`);
      expect(refused.headers.get('retry-after')).toBe('1');
      expect((await signIn('198.51.100.7', password)).status).toBe(429);
      // Its owner elsewhere is not held back.
      expect((await signIn('203.0.113.9', password)).status).toBe(200);
      app.clock.advance(1_000);
      expect((await guess('198.51.100.7', password)).status).toBe(200);
    });

    it('200: the right one forgets the wrong ones', async () => {
      for (let count = 0; count < 4; count += 1) await guess('198.51.100.7');
      const { body } = await guess('198.51.100.7', password);
      const fresh = app.with(body.accessToken);
      const again = (currentPassword: string) => change(fresh, { currentPassword }, from('198.51.100.7'));
      for (let count = 0; count < 4; count += 1) expect((await again(wrong)).status).toBe(401);
      expect((await again(chosen)).status).toBe(200);
    });

    it('500: counts as no guess, since what the service could not decide is no one’s fault', async () => {
      const { passwords } = app.services;
      const matches = passwords.matches.bind(passwords);
      for (let count = 0; count < 6; count += 1) {
        passwords.matches = () => Promise.reject(new Error('the hasher is gone'));
        expect((await guess('198.51.100.7', password)).status).toBe(500);
      }
      passwords.matches = matches;
      expect((await guess('198.51.100.7', password)).status).toBe(200);
    });
  });
});
