import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { tablesOf } from '../../test/support/statement-watch.ts';
import { type Client, type Json, TestApp } from '../../test/support/test-app.ts';
import { loopback, registerWebhook } from '../../test/support/webhooks.ts';
import { hour } from '../base/clock.ts';
import { Secret } from '../base/secret.ts';
import { encryptionKeyFile, encryptionWith, purposeOf, readEncryptionKey, writeEncryptionKey } from './encryption.ts';
import { encryptAnew, rotateEncryptionKey } from './rotate-encryption.ts';

const origin = { requestId: 'operator', network: 'local' };
const smtpPassword = 'mail-password-4711';
const oidcSecret = 'oidc-secret-4711';
const smtp = {
  host: 'smtp.example.com',
  from: 'no-reply@example.com',
  username: 'ada',
  password: smtpPassword,
};
const oidc = { issuer: 'https://login.example.com', clientId: 'latchkey', clientSecret: oidcSecret };

let app: TestApp;
let admin: Client;
let file: string;
beforeEach(async () => {
  app = await TestApp.start(loopback);
  file = join(app.dataDir, encryptionKeyFile);
  admin = await app.setUp();
  for (const secret of [smtpPassword, oidcSecret]) app.keepSecret(secret);
});
afterEach(() => app.close());

async function restart(): Promise<void> {
  await app.stop();
  app = await TestApp.start({ DATA_DIR: app.dataDir, ...loopback }, app.clock);
  admin = await app.signIn('ada@example.com');
}

/** Stores something encrypted in every place there is. */
async function storeSecrets(): Promise<void> {
  expect((await admin.put('/settings/smtp', smtp)).status).toBe(200);
  expect((await admin.put('/settings/oidc', oidc)).status).toBe(200);
  const { id } = await registerWebhook(admin, 'http://127.0.0.1:9/hook');
  expect((await admin.post(`/webhooks/${id}/rotate-secret`, {})).status).toBe(200);
  const { encryption, db, clock } = app.services;
  const content = await encryption.encrypt('signing-keys', new Secret('{}'));
  await db.transaction((tx) =>
    // Where nodes share the store, their keys are there already.
    tx
      .insertInto('shared_keys')
      .values({ name: 'signing', content, created_at: clock.now() })
      .onConflict((oc) => oc.doNothing())
      .execute(),
  );
}

/** Everything in the store, wherever it is, that has the form of an encrypted text. */
function encryptedTexts(): string[] {
  const rows = Object.values(tablesOf(app)).flat() as Json[];
  return rows
    .flatMap((row) => Object.values(row))
    .filter((value): value is string => typeof value === 'string' && purposeOf(value) !== null)
    .filter((value) => value.split('.').length === 5);
}

async function readableWith(key: Secret): Promise<number> {
  const encryption = encryptionWith(key);
  const texts = await Promise.all(encryptedTexts().map((text) => encryption.decrypt(purposeOf(text) ?? '', text)));
  return texts.filter((text) => text !== null).length;
}

const rotate = () => rotateEncryptionKey(app.services, app.dataDir, origin);

describe('rotateEncryptionKey', () => {
  it('encrypts everything anew, wherever it is stored, so that the old key reads nothing (AUDIT-15)', async () => {
    await storeSecrets();
    const old = readEncryptionKey(file);
    expect([encryptedTexts().length, await readableWith(old)]).toEqual([5, 5]);
    expect(await rotate()).toEqual({ encrypted: 5, unreadable: 0 });
    const now = readEncryptionKey(file);
    expect(now.expose()).not.toBe(old.expose());
    expect([encryptedTexts().length, await readableWith(old), await readableWith(now)]).toEqual([5, 0, 5]);
    expect(existsSync(`${file}.next`)).toBe(false);

    await restart();
    expect((await admin.get('/settings/smtp')).body).toMatchObject({ configured: true, username: 'ada', note: null });
    expect((await admin.get('/settings/oidc')).body).toMatchObject({ configured: true, clientId: 'latchkey' });
    expect((await app.services.mail.settings())?.login?.password.expose()).toBe(smtpPassword);
    expect((await app.audit()).filter(({ action }) => action === 'keys.encryption-rotated')).toMatchObject([
      { actor_user_id: null, request_id: 'operator', details: { encrypted: 5, unreadable: 0 } },
    ]);
  });

  it('leaves what no key reads as it is, and tells how much that is (AUDIT-15)', async () => {
    await storeSecrets();
    const other = encryptionWith(new Secret('0123456789abcdef'.repeat(4)));
    const content = await other.encrypt('mail-settings', new Secret('{}'));
    await app.services.db.transaction((tx) =>
      tx.updateTable('settings').set({ content }).where('name', '=', 'smtp').execute(),
    );
    expect(await rotate()).toEqual({ encrypted: 4, unreadable: 1 });
    expect(encryptedTexts()).toContain(content);
  });

  it.each([
    ['before the store was encrypted anew', false],
    ['after the store was encrypted anew', true],
  ])('cut short %s, the next start finds the key that reads it (AUDIT-15)', async (_, isAnew) => {
    await storeSecrets();
    const old = readEncryptionKey(file);
    const next = new Secret('fedcba9876543210'.repeat(4));
    writeEncryptionKey(`${file}.next`, next);
    if (isAnew) await encryptAnew(app.services, { from: old, to: next }, origin);
    await restart();
    expect(readEncryptionKey(file).expose()).toBe((isAnew ? next : old).expose());
    expect(existsSync(`${file}.next`)).toBe(false);
    expect((await admin.get('/settings/smtp')).body).toMatchObject({ configured: true, note: null });
  });

  it('refuses where there is no key, or a damaged one, and changes nothing (AUDIT-15)', async () => {
    await storeSecrets();
    const before = encryptedTexts();
    const content = readFileSync(file, 'utf8');
    writeFileSync(file, content.slice(5));
    await expect(rotate()).rejects.toThrow(/is damaged/);
    writeFileSync(file, content);
    renameSync(file, `${file}.away`);
    await expect(rotate()).rejects.toThrow(/holds no encryption-key/);
    renameSync(`${file}.away`, file);
    expect(encryptedTexts()).toEqual(before);
  });
});

describe('encryptAnew', () => {
  it('done again changes nothing (AUDIT-15)', async () => {
    await storeSecrets();
    const keys = { from: readEncryptionKey(file), to: new Secret('fedcba9876543210'.repeat(4)) };
    expect(await encryptAnew(app.services, keys, origin)).toEqual({ encrypted: 5, unreadable: 0 });
    const before = encryptedTexts();
    app.clock.advance(hour);
    expect(await encryptAnew(app.services, keys, origin)).toEqual({ encrypted: 0, unreadable: 0 });
    expect(encryptedTexts()).toEqual(before);
    writeEncryptionKey(file, keys.to);
  });
});
