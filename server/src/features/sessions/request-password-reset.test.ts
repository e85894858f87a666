import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { linkIn, MailServer, tokenIn } from '../../../test/support/mail-server.ts';
import { chosen, forget, gone, mailedToken, opens, resetWith, startWithMail } from '../../../test/support/recovery.ts';
import { type Client, password, type TestApp } from '../../../test/support/test-app.ts';
import { minute } from '../../base/clock.ts';

const path = '/userAccount/password/forgot';
const email = 'grace@example.com';
const neutralText =
  'If this e-mail address has an account, we send it a mail with a link to set a new password. If none arrives within ten minutes, ask again';

describe('POST /userAccount/password/forgot', () => {
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
  }
  async function restart(environment: Readonly<Record<string, string>>): Promise<void> {
    await app.close();
    await start(environment);
  }
  const links = () => app.services.db.read.selectFrom('one_time_links').selectAll().execute();

  /** Waits until all that was asked for before is done: work is begun in its order. */
  async function settled(): Promise<void> {
    await app.services.afterResponse.close();
  }

  it('200: mails a link to the page for a new password, valid for 20 minutes and one use (MAIL-5, PASSWORD-7, PASSWORD-8)', async () => {
    await restart({ FRONTEND_URL: 'https://id.example.com/app' });
    const response = await app.anonymous.post(path, { email }, { headers: { 'x-forwarded-host': 'evil.test' } });
    expect(response).toMatchObject({ status: 200, body: { message: neutralText } });
    const mail = await mails.mailTo(email);
    expect(mail).toMatchObject({
      to: [email],
      sender: 'no-reply@latchkey.test',
      subject: 'Reset your password for Example Ltd',
    });
    expect(linkIn(mail)).toBe(`https://id.example.com/app/reset-password#token=${tokenIn(mail)}`);
    for (const fact of ['Grace Hopper', 'Example Ltd', '20 minutes', 'works once', tokenIn(mail)]) {
      expect(mail.text).toContain(fact);
      expect(mail.html).toContain(fact);
    }
    app.clock.advance(20 * minute - 1);
    expect(await resetWith(app, tokenIn(mail))).toMatchObject({ status: 200 });
    expect(await opens(app, email, chosen)).toBe(true);
    expect(mails.mails).toHaveLength(1);
  });

  it('200: the secret is 256 random bits after a mark, stored as a hash, for one person and purpose (LINK-1, PASSWORD-6)', async () => {
    const token = await mailedToken({ app, mails }, email);
    expect(token).toMatch(/^lkl_[\w-]{43}$/);
    const next = await mailedToken({ app, mails }, 'ada@example.com');
    expect(next).not.toBe(token);
    expect(await links()).toMatchObject([
      {
        user_id: member.userId,
        purpose: 'reset',
        is_current: 1,
        ended_at: null,
        created_by: null,
        created_at: app.clock.now(),
        expires_at: app.clock.now() + 20 * minute,
        hash: expect.stringMatching(/^[\w-]{43}$/),
      },
      { user_id: admin.userId, purpose: 'reset' },
    ]);
    // That neither stands in the store or in the log is looked for when the service closes.
  });

  it('200: the audit log says who asked from where, and nothing of the link (AUDIT-1, PASSWORD-6)', async () => {
    const before = (await app.audit()).length;
    await mailedToken({ app, mails }, email);
    await forget(app, 'nobody@example.com');
    await settled();
    expect((await app.audit()).slice(before)).toMatchObject([
      {
        action: 'password.reset-requested',
        actor_user_id: null,
        subject_id: member.userId,
        network: '127.0.0.1',
        details: {},
      },
    ]);
  });

  it('200: anyone who never had a password gets in this way (PASSWORD-8)', async () => {
    await admin.post('/users', { fullName: 'New Comer', email: 'new@example.com' });
    expect(await resetWith(app, await mailedToken({ app, mails }, 'new@example.com'))).toMatchObject({ status: 200 });
    expect(await opens(app, 'new@example.com', chosen)).toBe(true);
  });

  it('200: an address in any spelling is one person, and the mail goes to the stored one (MAIL-3, USER-9)', async () => {
    for (const spelling of ['GRACE@Example.COM', ' grace@example.com ', 'grace@ｅｘａｍｐｌｅ.com']) {
      await mailedToken({ app, mails }, spelling, email);
      expect(mails.asked).toEqual([email]);
    }
  });

  it('200: a later link takes the place of the earlier one (LINK-3)', async () => {
    const [first, second] = [await mailedToken({ app, mails }, email), await mailedToken({ app, mails }, email)];
    expect(await resetWith(app, first)).toMatchObject(gone);
    expect(await resetWith(app, second)).toMatchObject({ status: 200 });
  });

  it('200: an invitation that is open stays so; using either link ends the other (LINK-3)', async () => {
    const { body: invitee } = await admin.post('/users', { fullName: 'Guest', email: 'guest@example.com' });
    const invited = async () => (await admin.post(`/users/${invitee._id}/invite-link`)).body.link.split('#token=')[1];
    const invitation = await invited();
    const reset = await mailedToken({ app, mails }, 'guest@example.com');
    expect(await resetWith(app, invitation)).toMatchObject({ status: 200 });
    expect(await resetWith(app, reset)).toMatchObject(gone);
    expect(await opens(app, 'guest@example.com', chosen)).toBe(true);
  });

  it('400: no address, another type or more than an address, and nothing is mailed (HTTP-14, MAIL-4, USER-11)', async () => {
    const bodies = [
      {},
      { email: 'grace' },
      { email: null },
      { email: [email] },
      { email: { $ne: null } },
      { email: 'grace@example.com,evil@evil.test' },
      { email: 'grace@example.com\r\nBcc: evil@evil.test' },
    ];
    for (const body of bodies) {
      const refused = { status: 400, body: { error: { code: 'VALIDATION_ERROR' } } };
      expect(await app.anonymous.post(path, body), JSON.stringify(body)).toMatchObject(refused);
    }
    await settled();
    expect(mails.asked).toEqual([]);
    expect(await links()).toEqual([]);
  });

  describe('after a personal access token has changed the address (AUTH-49)', () => {
    const moved = 'moved@example.com';
    beforeEach(async () => {
      const token = await member.token({ scopes: ['user:write'] });
      await token.patch(`/users/${member.userId}/email`, { email: moved });
      await mails.mailTo(email);
      // The link that confirms the new address is sent, too.
      await settled();
    });

    it.each([email, moved])('200: knows %s, and mails the earlier address only (AUTH-49)', async (address) => {
      const reset = await mailedToken({ app, mails }, address, email);
      await settled();
      expect(mails.asked).toEqual([email]);
      expect(await resetWith(app, reset)).toMatchObject({ status: 200 });
      // One signs in with the new one all the same.
      expect(await opens(app, moved, chosen)).toBe(true);
    });

    it('200: a further change by a token leaves recovery where it was (AUTH-49)', async () => {
      const token = await (await app.signIn(moved)).token({ scopes: ['user:write'] });
      await token.put(`/users/${member.userId}`, { email: 'third@example.com' });
      await settled();
      await mailedToken({ app, mails }, 'third@example.com', email);
      mails.clear();
      await forget(app, moved);
      await settled();
      expect(mails.asked).toEqual([]);
    });

    it('200: once an address is verified, mail goes there and the earlier one is forgotten (AUTH-49, ADDRESS-5)', async () => {
      const session = await app.signIn(moved);
      const chosenOne = 'chosen@example.com';
      mails.clear();
      await session.patch(`/users/${member.userId}/email`, { email: chosenOne, currentPassword: password });
      const link = tokenIn(await mails.mailTo(chosenOne));
      await settled();
      // Not before: an attacker with an open session must not take the account over by an address of their own.
      await mailedToken({ app, mails }, chosenOne, email);
      await settled();
      expect(mails.asked).toEqual([email]);
      expect((await app.with(link).post('/userAccount/email/confirm/token')).status).toBe(200);
      await mailedToken({ app, mails }, chosenOne);
      mails.clear();
      await forget(app, email);
      await forget(app, moved);
      await settled();
      expect(mails.asked).toEqual([]);
    });
  });

  it('200: the password stays as it is until the link is used (PASSWORD-7)', async () => {
    await mailedToken({ app, mails }, email);
    expect(await opens(app, email, password)).toBe(true);
    expect((await member.get('/org')).status).toBe(200);
  });
});
