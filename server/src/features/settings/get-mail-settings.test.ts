import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nextTurn, secondConnection } from '../../../test/support/second-connection.ts';
import { dropSharedKeys } from '../../../test/support/stored-keys.ts';
import { type Client, TestApp } from '../../../test/support/test-app.ts';
import { Secret } from '../../base/secret.ts';
import { encryptMailSettings } from './public.ts';

const path = '/settings/smtp';
const secret = 'Geheim-4711-Wort';
const unstored = { updatedBy: null, updatedAt: null, confirmedBy: null, needsReview: false };
const makers = { ...unstored, updatedBy: expect.any(String), updatedAt: expect.any(String) };
const nothing = {
  configured: false,
  source: null,
  host: null,
  port: null,
  security: null,
  username: null,
  hasPassword: false,
  oauth2: null,
  from: null,
  note: null,
  ...unstored,
};
const input = {
  host: 'mail.example.com',
  port: 2525,
  security: 'none',
  username: 'mara',
  password: secret,
  from: 'Example <hello@example.com>',
};
const stored = {
  configured: true,
  source: 'stored',
  host: 'mail.example.com',
  port: 2525,
  security: 'none',
  username: 'mara',
  hasPassword: true,
  oauth2: null,
  from: 'Example <hello@example.com>',
  note: null,
  ...makers,
};
const environment = { SMTP_URL: `smtps://ada%40example.com:${secret}@smtp.example.com` };
const configured = {
  ...stored,
  source: 'configuration',
  host: 'smtp.example.com',
  port: 465,
  security: 'tls',
  username: 'ada@example.com',
  from: 'ada@example.com',
};

describe('GET /settings/smtp', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  const settings = async () => {
    const { status, body, text } = await admin.get(path);
    expect(status).toBe(200);
    expect(text).not.toContain(secret);
    return body;
  };

  it('200: nothing is configured (MAIL-1, MAIL-12)', async () => {
    expect(await settings()).toEqual(nothing);
  });

  it('200: what an administrator stored, but for the password (AUDIT-5, AUDIT-7, MAIL-12)', async () => {
    expect((await admin.put(path, input)).status).toBe(200);
    expect(await settings()).toEqual(stored);
    expect((await admin.put(path, { host: 'relay.example.com', from: 'a@example.com' })).status).toBe(200);
    expect(await settings()).toEqual({
      ...stored,
      host: 'relay.example.com',
      port: 587,
      security: 'opportunistic',
      username: null,
      hasPassword: false,
      oauth2: null,
      from: 'a@example.com',
    });
  });

  it('200: what another process stored or removed is there at once (MAIL-9)', async () => {
    const { encryption } = app.services;
    const login = { username: 'mara', password: new Secret(secret) };
    const from = { name: 'Example', address: 'hello@example.com' };
    const content = await encryptMailSettings(encryption, {
      host: 'mail.example.com',
      port: 2525,
      security: 'none',
      login,
      from,
    });
    const store = secondConnection(app);
    store.prepare("DELETE FROM settings WHERE name = 'smtp'").run();
    await nextTurn();
    expect(await settings()).toEqual(nothing);
    const insert = 'INSERT INTO settings (name, content, updated_by, updated_at) VALUES (?, ?, ?, ?)';
    store.prepare(insert).run('smtp', content, admin.userId, 0);
    await nextTurn();
    expect(await settings()).toEqual(stored);
    store.close();
  });

  it('200: a token with org:admin is enough; 403: any other, and a member (AUDIT-4)', async () => {
    expect((await (await admin.token({ scopes: ['org:admin'] })).get(path)).status).toBe(200);
    const other = await (await admin.token({ scopes: ['org:write', 'user:invite'] })).get(path);
    expect([other.status, other.body.error.code]).toEqual([403, 'INSUFFICIENT_SCOPE']);
    const member = await app.member(admin, 'grace@example.com');
    expect([(await member.get(path)).status, (await app.anonymous.get(path)).status]).toEqual([403, 401]);
    expect((await app.service(['FETCH_CONFIG']).get(path)).status).toBe(401);
  });

  it('200: the configuration comes before what is stored, which is told and kept (AUDIT-7, CONFIG-23, MAIL-12)', async () => {
    const { dataDir } = app;
    await app.stop();
    app = await TestApp.start({ ...environment, DATA_DIR: dataDir });
    const note = 'The configuration differs, and takes precedence over the stored settings';
    admin = await app.signIn('ada@example.com');
    expect(await settings()).toEqual({ ...configured, note });
    await admin.delete(path);
    expect(await settings()).toEqual({ ...configured, ...unstored, note: null });
    expect((await admin.put(path, input)).body).toEqual({ ...configured, note });
    await app.stop();
    app = await TestApp.start({ DATA_DIR: dataDir });
    admin = await app.signIn('ada@example.com');
    expect(await settings()).toEqual(stored);
  });

  it('200: MAIL_FROM comes before the stored sender (CONFIG-11, CONFIG-23)', async () => {
    const { dataDir } = app;
    await app.stop();
    app = await TestApp.start({ MAIL_FROM: 'All <all@example.com>', DATA_DIR: dataDir });
    admin = await app.signIn('ada@example.com');
    expect(await settings()).toEqual({
      ...stored,
      from: 'All <all@example.com>',
    });
  });

  it('200: what cannot be read with another key counts as unset, and says so; setting it anew mends it (AUDIT-6, CONFIG-7)', async () => {
    const { dataDir } = app;
    await app.stop();
    dropSharedKeys(app);
    app = await TestApp.start({ DATA_DIR: dataDir, ENCRYPTION_KEY: '0123456789abcdef'.repeat(4) });
    admin = await app.signIn('ada@example.com');
    const note = 'The stored settings cannot be decrypted with the present ENCRYPTION_KEY: set them again';
    expect(await settings()).toEqual({ ...nothing, ...makers, note });
    const invited = await admin.post('/users/bulk/invite', { emails: ['new@example.com'] });
    expect([invited.status, invited.body.message]).toEqual([400, expect.stringContaining('SMTP_URL')]);
    expect((await admin.post(`${path}/test`)).status).toBe(400);
    expect((await app.anonymous.post('/userAccount/password/forgot', { email: 'ada@example.com' })).status).toBe(200);
    const { password: _, ...without } = input;
    expect((await admin.put(path, without)).body.error.details).toEqual([
      { field: 'body.password', message: 'is required with this username, host and port' },
    ]);
    expect((await admin.put(path, input)).body).toEqual(stored);
    expect(await settings()).toEqual(stored);
  });
});
