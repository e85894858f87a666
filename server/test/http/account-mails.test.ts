import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { linkIn, MailServer, type ReceivedMail, tokenIn } from '../support/mail-server.ts';
import { forget, resetWith, signedOut, startWithMail } from '../support/recovery.ts';
import { type Client, type Json, organization, password, TestApp } from '../support/test-app.ts';

const email = 'grace@example.com';
const moved = 'moved@example.com';
const seconds = 1_000;

/** Expects both versions of a mail to say the same facts. */
function expectFacts({ text, html }: ReceivedMail, facts: readonly string[]): void {
  for (const fact of facts) {
    // Lines of the text may break anywhere between words.
    expect(text.replace(/\s+/g, ' ')).toContain(fact);
    expect(html.replace(/\s+/g, ' ')).toContain(fact);
  }
}

let mails: MailServer;
let app: TestApp;

beforeEach(async () => {
  mails = await MailServer.start();
});
afterEach(async () => {
  await app.close();
  await mails.stop();
});

/** Waits until all mail that is due has gone out, or has not. */
async function settled(): Promise<void> {
  await app.services.afterResponse.close();
}
const logged = (text: string) => app.logLines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === text);

describe('the welcome mail of POST /org', () => {
  const found = (body: Json = {}) => app.anonymous.post('/org', { ...organization, ...body });

  it('200: goes to the administrator when sendEmail is true, and holds no secret (ORG-15)', async () => {
    app = await startWithMail(mails, { FRONTEND_URL: 'https://id.example.com' });
    expect((await found({ sendEmail: true, shortName: 'Example' })).status).toBe(200);
    const mail = await mails.mailTo('ada@example.com');
    expect(mail).toMatchObject({ to: ['ada@example.com'], subject: 'Welcome to Example' });
    expectFacts(mail, ['Ada Lovelace', 'Example', 'https://id.example.com/sign-in']);
    expect(linkIn(mail)).toBe('https://id.example.com/sign-in');
    expect(mail.raw).not.toContain(password);
    expect((await found({ sendEmail: true })).status).toBe(409);
    await settled();
    expect(mails.mails).toHaveLength(1);
  });

  it('200: an individual account is named after its domain (ORG-15)', async () => {
    app = await startWithMail(mails);
    await found({ sendEmail: true, accountType: 'individual', registeredName: undefined });
    expect((await mails.mailTo('ada@example.com')).subject).toBe('Welcome to example.com');
  });

  it('200: no one gets one unasked, or of an organization that was not created (ORG-15)', async () => {
    app = await startWithMail(mails);
    expect((await found({ sendEmail: true, password: 'weak' })).status).toBe(400);
    expect((await found({ sendEmail: 'true' })).status).toBe(400);
    expect((await found({ sendEmail: false })).status).toBe(200);
    await settled();
    expect(mails.asked).toEqual([]);
    await app.close();
    app = await startWithMail(mails);
    expect((await found()).status).toBe(200);
    await settled();
    expect(mails.asked).toEqual([]);
  });

  it('200: neither without mail nor with a server that fails does it undo anything (MAIL-1, MAIL-2, ORG-15)', async () => {
    app = await TestApp.start();
    const { status, text } = await found({ sendEmail: true });
    expect(status).toBe(200);
    await settled();
    expect(logged('mail not sent: mail is not configured')).toMatchObject([{ what: 'welcome' }]);
    await app.close();
    app = await startWithMail(mails);
    mails.faults = { refuse: () => 550 };
    const failing = await found({ sendEmail: true });
    expect([failing.status, Object.keys(failing.body)]).toEqual([200, Object.keys(JSON.parse(text))]);
    await settled();
    expect(logged('a mail did not go out')).toMatchObject([{ what: 'welcome', kind: 'refused' }]);
    expect((await app.signInTokens('ada@example.com')).status).toBe(200);
  });
});

describe('mails about an account', () => {
  let admin: Client;
  let member: Client;
  beforeEach(() => start());

  async function start(environment: Readonly<Record<string, string>> = {}): Promise<void> {
    app = await startWithMail(mails, environment);
    admin = await app.setUp();
    member = await app.member(admin, email);
  }
  const got = () => mails.mails.map(({ to, subject }) => [...to, subject]);
  /** In order of the addresses, whichever mail was quicker. */
  const sorted = () => got().toSorted(([one = ''], [other = '']) => one.localeCompare(other));
  const reauthorize = 'Confirm your e-mail address for Example Ltd';
  const changed = 'Your e-mail address at Example Ltd was changed';
  const ended = 'A session of yours at Example Ltd was ended';

  describe('the notice of a changed address (MAIL-6)', () => {
    const move = (who: Client, to: string) => who.patch(`/users/${member.userId}/email`, { email: to });

    it('200: goes to the last verified address, with a link to the new one where that is unverified (ADDRESS-5)', async () => {
      expect((await move(member, moved)).status).toBe(200);
      await settled();
      expect(sorted()).toEqual([
        [email, changed],
        [moved, reauthorize],
      ]);
      const [mail] = mails.mailsTo(email);
      if (mail) expectFacts(mail, ['Example Ltd', moved]);
      expect(mail?.text).not.toMatch(/https?:/);
      mails.clear();
      // An unverified address belongs to no one: it gets no notice.
      const token = await member.token({ scopes: ['user:write'] });
      await move(token, 'third@example.com');
      await settled();
      expect(sorted()).toEqual([
        [email, changed],
        ['third@example.com', reauthorize],
      ]);
    });

    it('200: goes to both addresses where the new one is verified: by an administrator, and back again', async () => {
      await move(member, moved);
      await settled();
      mails.clear();
      const body = { email: 'third@example.com', fullName: 'Grace Murray Hopper' };
      expect((await admin.put(`/users/${member.userId}`, body)).status).toBe(200);
      await settled();
      expect(sorted()).toEqual([
        [email, changed],
        ['third@example.com', changed],
      ]);
      await move(member, moved);
      await settled();
      mails.clear();
      await move(member, 'third@example.com');
      await settled();
      expect(got()).toEqual([['third@example.com', changed]]);
    });

    it('no one is told of what did not happen', async () => {
      expect((await move(member, 'GRACE@Example.com')).status).toBe(200);
      expect((await move(member, 'ada@example.com')).status).toBe(409);
      expect((await move(member, 'moved')).status).toBe(400);
      expect((await move(app.anonymous, moved)).status).toBe(401);
      expect((await admin.put(`/users/${member.userId}`, { email, fullName: 'Grace' })).status).toBe(200);
      await settled();
      expect(mails.asked).toEqual([]);
    });

    it('200: the change stays, whatever becomes of the mail (MAIL-2)', async () => {
      mails.faults = { refuse: () => 550 };
      expect((await move(member, moved)).body.email).toBe(moved);
      await settled();
      expect(new Set(logged('a mail did not go out').map(({ what }) => what))).toEqual(
        new Set(['notice of a changed e-mail', 'confirmation of an e-mail']),
      );
      expect((await admin.get(`/users/${member.userId}`)).body.email).toBe(moved);
      await app.close();
      await start({ SMTP_URL: '', MAIL_FROM: '' });
      expect((await move(member, moved)).body.email).toBe(moved);
      await settled();
      expect(mails.mails).toEqual([]);
    });
  });

  describe('the warning of a stolen session (MAIL-10)', () => {
    const refresh = (token: string) => app.with(token).post('/userAccount/refresh/token');
    /** Returns a refresh token that was exchanged so long ago that it is no longer valid. */
    async function rotated(user = email): Promise<string> {
      const { refreshToken } = (await app.signInTokens(user)).body;
      expect((await refresh(refreshToken)).status).toBe(200);
      expect((await refresh(refreshToken)).status).toBe(200);
      app.clock.advance(10 * seconds);
      return refreshToken;
    }

    it('401: goes to the owner once, and says when and from where', async () => {
      const token = await rotated();
      await settled();
      expect(mails.asked).toEqual([]);
      expect(await refresh(token)).toMatchObject(signedOut);
      expect(await refresh(token)).toMatchObject(signedOut);
      await settled();
      expect(got()).toEqual([[email, ended]]);
      const [mail] = mails.mails;
      if (mail) expectFacts(mail, ['Grace Hopper', '27 November 2026', '20:17 UTC', '127.0.0.1', 'Example Ltd']);
    });

    it('401: goes to the address of before while a token’s is not confirmed (AUTH-49)', async () => {
      const byToken = await member.token({ scopes: ['user:write'] });
      await byToken.patch(`/users/${member.userId}/email`, { email: moved });
      const token = await rotated(moved);
      await settled();
      mails.clear();
      await refresh(token);
      await settled();
      expect(got()).toEqual([[email, ended]]);
    });

    it('401: no one is warned of a session that had ended, or whose owner is deleted', async () => {
      const { refreshToken, accessToken } = (await app.signInTokens(email)).body;
      await refresh(refreshToken);
      app.clock.advance(10 * seconds);
      await app.with(accessToken).post('/userAccount/logout/manual');
      expect(await refresh(refreshToken)).toMatchObject(signedOut);
      const token = await rotated();
      await admin.delete(`/users/${member.userId}`);
      expect((await refresh(token)).status).toBe(401);
      await settled();
      expect(mails.asked).toEqual([]);
    });

    it('401: the session ends, whatever becomes of the mail (MAIL-2)', async () => {
      const token = await rotated();
      await mails.stop();
      expect(await refresh(token)).toMatchObject(signedOut);
      await vi.waitUntil(() => logged('a mail did not go out').length > 0);
      expect(logged('a mail did not go out')).toMatchObject([{ what: 'notice: session reused' }]);
      const rows = (await app.audit()).filter(({ action }) => action === 'session.refresh-reused');
      expect(rows).toHaveLength(1);
    });
  });

  describe('a service that stops (RUN-7)', () => {
    it('sends the mail that is due, also that of a request that it has just answered', async () => {
      mails.faults = { delayMs: 300 };
      expect((await forget(app, email)).status).toBe(200);
      await app.stop();
      const token = tokenIn(await mails.mailTo(email));
      app = await TestApp.start({ DATA_DIR: app.dataDir }, app.clock);
      expect((await resetWith(app, token)).status).toBe(200);
    });

    it('gives up what a mail server never takes', async () => {
      mails.faults = { hang: () => true };
      await forget(app, email);
      await mails.until(() => mails.hanging === 1, 'a mail that hangs');
      await app.stop();
      expect(logged('a mail did not go out')).toMatchObject([{ what: 'recovery of a password', kind: 'unreachable' }]);
      app = await TestApp.start({ DATA_DIR: app.dataDir }, app.clock);
      expect((await app.signIn(email)).userId).toBe(member.userId);
    });
  });
});
