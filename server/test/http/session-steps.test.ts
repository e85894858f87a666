import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { signedOut } from '../support/recovery.ts';
import { SignInDesk } from '../support/sign-in-desk.ts';
import { type Client, type Json, password } from '../support/test-app.ts';

const email = 'grace@example.com';
const refresh = '/userAccount/refresh/token';

describe('sessions after the sign-in steps were changed (SESSION-6)', () => {
  let desk: SignInDesk;
  let member: Client;
  beforeEach(async () => {
    desk = await SignInDesk.start();
    await desk.setSteps(['password']);
    member = await desk.app.member(desk.admin, email);
  });
  afterEach(() => desk.close());

  const refreshed = async (pair: Json) => desk.app.with(pair.refreshToken).post(refresh);
  const byPassword = async () => (await desk.app.signInTokens(email)).body;

  async function byBoth(): Promise<Json> {
    const token = await desk.begin(email);
    await desk.take(token, ['password', password]);
    desk.mail.clear();
    await desk.app.anonymous.post('/userAccount/login/otp/generate', { email });
    const { text } = await desk.mail.mailTo(email);
    return (await desk.take(token, ['otp', /\b\d{6}\b/.exec(text)?.[0] ?? ''])).body;
  }

  it('to more: a session that went through less ends at its next refresh, and not before', async () => {
    const pair = await byPassword();
    await desk.setSteps(['password'], ['otp']);
    expect((await desk.app.with(pair.accessToken).get('/org')).status).toBe(200);
    const rows = (await desk.app.audit()).length;
    expect(await refreshed(pair)).toMatchObject(signedOut);
    expect(await desk.app.with(pair.accessToken).get('/org')).toMatchObject(signedOut);
    expect((await desk.app.audit()).slice(rows)).toMatchObject([
      { action: 'session.ended', actor_user_id: member.userId, details: { reason: 'sign-in-steps' } },
    ]);
    expect(await refreshed(pair)).toMatchObject(signedOut);
  });

  it('to more, within the ten seconds after an exchange: the same pair is not answered again', async () => {
    const pair = await byPassword();
    const { body: next } = await refreshed(pair);
    await desk.setSteps(['password'], ['otp']);
    for (const one of [pair, next]) expect(await refreshed(one)).toMatchObject(signedOut);
  });

  it('to less, to the same, or to a choice that it went through: it goes on', async () => {
    let { body: single } = await desk.app.signInTokens(email);
    await desk.setSteps(['password'], ['otp']);
    let both = await byBoth();
    await desk.setSteps(['otp', 'password']);
    for (const _ of [1, 2]) {
      single = (await refreshed(single)).body;
      both = (await refreshed(both)).body;
    }
    expect((await desk.app.with(single.accessToken).get('/org')).status).toBe(200);
    await desk.setSteps(['otp'], ['password']);
    expect((await refreshed(both)).status).toBe(200);
    expect(await refreshed(single)).toMatchObject(signedOut);
  });

  it('to another method: a session that did not go through it ends', async () => {
    const pair = await byPassword();
    await desk.setSteps(['otp']);
    expect(await refreshed(pair)).toMatchObject(signedOut);
  });

  it('a session of an earlier release goes on as long as the steps stay as they were', async () => {
    desk.app.clock.advance(1_000);
    let pair = await byPassword();
    await desk.app.services.db.transaction((tx) => tx.updateTable('sessions').set({ methods: null }).execute());
    pair = (await refreshed(pair)).body;
    expect((await desk.app.with(pair.accessToken).get('/org')).status).toBe(200);
    desk.app.clock.advance(1_000);
    await desk.setSteps(['password', 'otp']);
    expect(await refreshed(pair)).toMatchObject(signedOut);
  });
});

describe('notices to administrators and owners (SESSION-11)', () => {
  let desk: SignInDesk;
  beforeEach(async () => {
    desk = await SignInDesk.start();
    await desk.settled();
    desk.mail.clear();
  });
  afterEach(() => desk.close());

  it('every administrator hears of other sign-in steps, and no member', async () => {
    const second = await desk.app.member(desk.admin, 'boss@example.com');
    await desk.app.promote(second.userId);
    await desk.app.member(desk.admin, email);
    await desk.setSteps(['password'], ['otp']);
    for (const to of ['ada@example.com', 'boss@example.com']) {
      expect((await desk.mail.noticeTo(to)).text.replaceAll('\n', ' ')).toContain('are now: password, then otp.');
    }
    await desk.settled();
    expect(desk.mail.notices).toHaveLength(2);
  });

  it('the owner hears of a token that never expires or has scopes of administrators, and of no other', async () => {
    const scopes = ['user:read'];
    await desk.admin.token({ scopes });
    await desk.admin.token({ scopes, expiryDays: 365 });
    await desk.admin.token({ scopes, expiryDays: 'never', name: 'Lasting' });
    await desk.settled();
    await desk.mail.until(() => desk.mail.notices.length > 0);
    expect(desk.mail.notices.map(({ text }) => [text.includes('Lasting'), text.includes('never expires')])).toEqual([
      [true, true],
    ]);
    desk.mail.clear();
    await desk.admin.token({ scopes: ['user:read', 'token:admin'], name: 'Strong' });
    const { text } = await desk.mail.noticeTo('ada@example.com');
    expect([text.includes('Strong'), text.includes('token:admin'), text.includes('never expires')]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it('nothing waits for a mail server that hangs, and nothing fails with one that is gone', async () => {
    desk.mail.faults = { hang: () => true };
    expect((await desk.admin.post('/personal-access-tokens', { name: 'x', expiryDays: 'never' })).status).toBe(201);
    await desk.mail.stop();
    await desk.setSteps(['password']);
    expect((await desk.admin.get('/org')).status).toBe(200);
  });

  it('a kind of notice is left out beyond five in ten minutes, and hides no other', async () => {
    const { limits } = desk.app.services;
    const real = limits.tryCount;
    const counted: string[] = [];
    Object.assign(limits, {
      tryCount: async (what: string, key: string) => {
        counted.push(`${what} ${key}`);
        return counted.filter((one) => one === `${what} ${key}`).length <= 5;
      },
    });
    try {
      for (let count = 0; count < 7; count += 1) await desk.admin.token({ expiryDays: 'never' });
      await desk.setSteps(['password']);
      await desk.settled();
      await desk.mail.until(() => desk.mail.notices.length >= 6);
      expect(desk.mail.notices.map(({ subject }) => subject.slice(0, 10)).sort()).toEqual([
        ...Array.from({ length: 5 }, () => 'A personal'),
        'The sign-i',
      ]);
    } finally {
      Object.assign(limits, { tryCount: real });
    }
  });
});
