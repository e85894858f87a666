import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MailServer } from '../support/mail-server.ts';
import { secondConnection } from '../support/second-connection.ts';
import { asStored, StoredMail, settingsOf } from '../support/stored-mail.ts';
import { organization, TestApp } from '../support/test-app.ts';

const email = 'ada@example.com';

describe('the sender of mail', () => {
  let mails: MailServer;
  beforeEach(async () => {
    mails = await MailServer.start();
  });
  afterEach(() => mails.stop());

  /** Returns the sender of the welcome mail, in the envelope and in the header. */
  async function senderWith(environment: Readonly<Record<string, string>>): Promise<readonly [string, string]> {
    const app = await TestApp.start({ SMTP_URL: mails.url, ...environment });
    expect((await app.anonymous.post('/org', { ...organization, sendEmail: true })).status).toBe(200);
    const { sender, from } = await mails.mailTo(email);
    await app.close();
    return [sender, from];
  }

  it('is MAIL_FROM, with its name and without (CONFIG-11)', async () => {
    const named = await senderWith({ MAIL_FROM: 'Exämple & Söhne, Ltd <mail@example.com>' });
    expect(named).toEqual(['mail@example.com', '"Exämple & Söhne, Ltd" <mail@example.com>']);
    mails.clear();
    expect(await senderWith({ MAIL_FROM: 'mail@example.com' })).toEqual(['mail@example.com', 'mail@example.com']);
  });

  it('is no-reply at the host of BASE_URL without it (CONFIG-29)', async () => {
    const address = 'no-reply@id.example.com';
    expect(await senderWith({ BASE_URL: 'https://id.example.com:8443/latchkey' })).toEqual([address, address]);
    mails.clear();
    expect(await senderWith({})).toEqual(['no-reply@localhost', 'no-reply@localhost']);
  });

  it('is who signs in at the server, where that is an address (CONFIG-29)', async () => {
    const url = (user: string) => ({ SMTP_URL: `smtp://${user}:pa55word@127.0.0.1:1`, BASE_URL: 'https://id.example' });
    for (const [user, address] of [
      ['Post%40Example.com', 'post@example.com'],
      ['post', 'no-reply@id.example'],
      ['a%2Cb%40example.com', 'no-reply@id.example'],
    ] as const) {
      const app = await TestApp.start(url(user));
      expect((await settingsOf(app))?.from).toEqual({ name: null, address });
      await app.close();
    }
  });
});

describe('what an administrator stores about mail', () => {
  let mail: StoredMail;
  beforeEach(async () => {
    mail = await StoredMail.start();
  });
  afterEach(() => mail.app.close());

  it('is encrypted in the store, host and sender too, and holds over a restart (AUDIT-6, CONFIG-7)', async () => {
    const store = secondConnection(mail.app);
    const rows = store.prepare('SELECT * FROM settings').all();
    store.close();
    expect(rows).toMatchObject([
      { name: 'smtp', content: expect.stringMatching(/^eyJ[\w-]+\.\.[\w-]+\.[\w-]+\.[\w-]+$/) },
    ]);
    expect(JSON.stringify(rows)).not.toMatch(/example\.com|mailer|4711/);
    await mail.startAgain();
    expect(await mail.settings()).toEqual(asStored);
  });

  it('comes after SMTP_URL, as a whole; MAIL_FROM says the sender of both (CONFIG-11, CONFIG-23, AUDIT-7)', async () => {
    await mail.startAgain({ SMTP_URL: 'smtp://other.example.com', MAIL_FROM: 'mail@example.com' });
    const from = { name: null, address: 'mail@example.com' };
    const other = { host: 'other.example.com', port: 587, security: 'opportunistic', login: null, from };
    expect(await mail.settings()).toEqual(other);
    expect(await mail.told()).toMatchObject({
      source: 'configuration',
      note: 'The configuration differs, and takes precedence over the stored settings',
    });
    await mail.startAgain({ MAIL_FROM: 'mail@example.com' });
    expect(await mail.settings()).toEqual({ ...asStored, from });
  });

  it('removed: MAIL_FROM alone configures no mail (CONFIG-11, MAIL-1)', async () => {
    await mail.startAgain({ MAIL_FROM: 'mail@example.com' });
    expect((await (await mail.app.signIn(email)).delete('/settings/smtp')).status).toBe(200);
    expect(await mail.settings()).toBeNull();
    expect(await mail.told()).toMatchObject({ configured: false, source: null, note: null });
  });
});
