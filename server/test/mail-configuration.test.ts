import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StartupError } from '../src/errors.ts';
import { MailServer } from './mail-server.ts';
import { secondConnection } from './second-connection.ts';
import { organization, TestApp } from './test-app.ts';

const key = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
const otherKey = `${key.slice(1)}9`;
const email = 'ada@example.com';

/** Where mail goes out, its password in clear; `null` where it is not configured. */
async function settingsOf(app: TestApp) {
  const settings = await app.services.mail.settings();
  if (!settings) return null;
  const { login, ...rest } = settings;
  return { ...rest, login: login && [login.username, login.password.expose()] };
}

describe('the sender of mail', () => {
  let mails: MailServer;
  beforeEach(async () => {
    mails = await MailServer.start();
  });
  afterEach(() => mails.stop());

  /** Who the welcome mail comes from, in the envelope and for people. */
  async function senderWith(environment: Readonly<Record<string, string>>): Promise<readonly [string, string]> {
    const app = await TestApp.start({ SMTP_URL: mails.url, ...environment });
    expect((await app.nobody.post('/org', { ...organization, sendEmail: true })).status).toBe(200);
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
  const stored = {
    host: 'smtp.example.com',
    port: 2525,
    security: 'starttls',
    username: 'mailer',
    password: 'Stored-Pass-4711',
    from: 'Stored <stored@example.com>',
  };
  const asStored = {
    host: 'smtp.example.com',
    port: 2525,
    security: 'starttls',
    login: ['mailer', 'Stored-Pass-4711'],
    from: { name: 'Stored', address: 'stored@example.com' },
  };
  let app: TestApp;

  const startAgain = async (environment: Readonly<Record<string, string>> = {}) => {
    const { dataDir, clock } = app;
    await app.stop();
    app = await TestApp.start({ ...environment, DATA_DIR: dataDir }, clock);
    app.keepSecret(stored.password);
  };
  async function told(): Promise<unknown> {
    return (await (await app.signIn(email)).get('/settings/smtp')).body;
  }

  beforeEach(async () => {
    app = await TestApp.start();
    app.keepSecret(stored.password);
    const admin = await app.setUp();
    const { status, text } = await admin.put('/settings/smtp', stored);
    if (status !== 200) throw new Error(`nothing is stored: ${status} ${text}`);
  });
  afterEach(() => app.close());

  it('is encrypted in the store, host and sender too, and holds over a restart (AUDIT-6, CONFIG-7)', async () => {
    const store = secondConnection(app);
    const rows = store.prepare('SELECT * FROM settings').all();
    store.close();
    expect(rows).toMatchObject([
      { name: 'smtp', content: expect.stringMatching(/^eyJ[\w-]+\.\.[\w-]+\.[\w-]+\.[\w-]+$/) },
    ]);
    expect(JSON.stringify(rows)).not.toMatch(/example\.com|mailer|4711/);
    const file = readFileSync(join(app.dataDir, 'encryption-key'), 'utf8');
    await startAgain();
    expect(await settingsOf(app)).toEqual(asStored);
    expect(readFileSync(join(app.dataDir, 'encryption-key'), 'utf8')).toBe(file);
    // A key that is given comes before the file, and may be the same.
    await startAgain({ ENCRYPTION_KEY: file.trim() });
    expect(await settingsOf(app)).toEqual(asStored);
  });

  it('counts as not configured under another key, which is told, and comes back with the right one (AUDIT-6, CONFIG-7, MAIL-1)', async () => {
    await startAgain({ ENCRYPTION_KEY: otherKey });
    expect(await settingsOf(app)).toBeNull();
    expect(await told()).toMatchObject({
      configured: false,
      host: null,
      hasPassword: false,
      note: 'What is stored cannot be read with the present ENCRYPTION_KEY: set it anew',
    });
    await startAgain();
    expect(await settingsOf(app)).toEqual(asStored);
    expect(await told()).toMatchObject({ configured: true, source: 'stored', hasPassword: true, note: null });
  });

  it('comes after SMTP_URL, as a whole; MAIL_FROM says the sender of both (CONFIG-11, CONFIG-23, AUDIT-7)', async () => {
    await startAgain({ SMTP_URL: 'smtp://other.example.com', MAIL_FROM: 'mail@example.com' });
    const from = { name: null, address: 'mail@example.com' };
    const other = { host: 'other.example.com', port: 587, security: 'opportunistic', login: null, from };
    expect(await settingsOf(app)).toEqual(other);
    expect(await told()).toMatchObject({
      source: 'configuration',
      note: 'The configuration says otherwise and comes before what is stored',
    });
    await startAgain({ MAIL_FROM: 'mail@example.com' });
    expect(await settingsOf(app)).toEqual({ ...asStored, from });
  });

  it('removed: MAIL_FROM alone configures no mail (CONFIG-11, MAIL-1)', async () => {
    await startAgain({ MAIL_FROM: 'mail@example.com' });
    expect((await (await app.signIn(email)).delete('/settings/smtp')).status).toBe(200);
    expect(await settingsOf(app)).toBeNull();
    expect(await told()).toMatchObject({ configured: false, source: null, note: null });
  });

  it('is nothing that a service starts with whose key file is damaged (CONFIG-7, CONFIG-24)', async () => {
    const { dataDir } = app;
    const file = join(dataDir, 'encryption-key');
    await app.stop();
    const good = readFileSync(file, 'utf8');
    writeFileSync(file, good.slice(1));
    const started = TestApp.start({ DATA_DIR: dataDir }, app.clock);
    await expect(started).rejects.toThrow(
      new StartupError(`The key file ${file} is damaged: restore it from a backup`),
    );
    writeFileSync(file, good);
    app = await TestApp.start({ DATA_DIR: dataDir }, app.clock);
    expect(await settingsOf(app)).toEqual(asStored);
  });
});
