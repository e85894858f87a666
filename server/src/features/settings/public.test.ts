import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp } from '../../../test/support/test-app.ts';
import { Secret } from '../../base/secret.ts';
import { decryptMailSettings, encryptMailSettings } from './public.ts';

const path = '/settings/smtp';
const input = { host: 'mail.example.com', from: 'Example <hello@example.com>' };

describe('where mail goes out', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  it('is the same object as long as nothing changes, for many at once too: connections are kept by it (MAIL-7)', async () => {
    await admin.put(path, input);
    const { mail } = app.services;
    const all = await Promise.all(Array.from({ length: 8 }, () => mail.settings()));
    expect(new Set(all).size).toBe(1);
    await admin.put(path, input);
    const next = await mail.settings();
    expect(next).toEqual(all[0]);
    expect(next).not.toBe(all[0]);
    expect(await mail.settings()).toBe(next);
  });

  it('is stored so that no two are alike, and nothing else is taken for it (AUDIT-6)', async () => {
    const { encryption } = app.services;
    const login = { username: 'mara', password: new Secret('Geheim-4711-Wort') };
    const from = { name: null, address: 'hello@example.com' };
    const settings = { host: 'mail.example.com', port: 25, security: 'none', login, from } as const;
    const content = await encryptMailSettings(encryption, settings);
    expect(await encryptMailSettings(encryption, settings)).not.toBe(content);
    const read = await decryptMailSettings(encryption, content);
    expect([read?.host, read?.login?.password.expose()]).toEqual(['mail.example.com', 'Geheim-4711-Wort']);
    const foreign = await encryption.encrypt('something-else', new Secret('{}'));
    const altered = `${content.slice(0, -4)}AAAA`;
    for (const bad of [foreign, altered, '', 'x', '{}']) expect(await decryptMailSettings(encryption, bad)).toBeNull();
  });
});

describe('whom mail comes from', () => {
  it.each([
    [
      'MAIL_FROM',
      { SMTP_URL: 'smtp://a%40b.example:x@h.example', MAIL_FROM: 'Us <us@x.example>' },
      'Us <us@x.example>',
    ],
    ['who signs in, if that is an address', { SMTP_URL: 'smtp://Ada%40B.example:x@h.example' }, 'ada@b.example'],
    [
      'nobody in particular, at our own address',
      { SMTP_URL: 'smtp://mara:x@h.example', BASE_URL: 'https://id.example.com:8443' },
      'no-reply@id.example.com',
    ],
  ])('is %s (CONFIG-11, CONFIG-29)', async (_, environment, from) => {
    const app = await TestApp.start(environment);
    expect((await (await app.setUp()).get(path)).body).toMatchObject({ source: 'configuration', from });
    await app.close();
  });
});
