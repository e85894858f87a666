import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MailServer } from '../../../test/support/mail-server.ts';
import { secondConnection } from '../../../test/support/second-connection.ts';
import { type Client, TestApp, type TestResponse } from '../../../test/support/test-app.ts';

const path = '/settings/smtp';
const secret = 'Geheim-4711-Wort';
const input = {
  host: 'mail.example.com',
  port: 2525,
  security: 'starttls',
  username: 'mara',
  password: secret,
  from: 'Example <hello@example.com>',
};
const { password: _, ...withoutPassword } = input;
const missing = { field: 'body.password', message: 'is required with this username, host and port' };

let app: TestApp;
let admin: Client;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
});
afterAll(() => app.close());

const content = () => {
  const store = secondConnection(app);
  try {
    return store.prepare("SELECT content FROM settings WHERE name = 'smtp'").pluck().get() as string | undefined;
  } finally {
    store.close();
  }
};

/** The password that the service would sign in with. */
const password = async () => (await app.services.mail.settings())?.login?.password.expose();

describe('PUT /settings/smtp', () => {
  beforeEach(async () => {
    await admin.put(path, input);
  });

  it('200: answers what is set now, but for the password (AUDIT-5, MAIL-12)', async () => {
    const { body, text } = await admin.put(path, { ...input, from: '  "Ann, Bob" <Hello@EXAMPLE.com> ' });
    const { username, host, port, security } = input;
    expect(body).toEqual({
      configured: true,
      source: 'stored',
      host,
      port,
      security,
      username,
      hasPassword: true,
      oauth2: null,
      from: 'Ann, Bob <hello@example.com>',
      note: null,
      updatedBy: admin.userId,
      updatedAt: expect.any(String),
      confirmedBy: null,
      needsReview: false,
    });
    expect(text).not.toContain(secret);
    expect(await password()).toBe(secret);
  });

  it('200: is recorded without the password (AUDIT-1, AUDIT-4, AUDIT-8)', async () => {
    const { username, host, port, security } = input;
    await admin.delete(path);
    await admin.put(path, input);
    const set = { username, host, port, security, password: '[secret]' };
    const row = (await app.audit()).at(-1);
    expect(row).toMatchObject({
      action: 'settings.mail-set',
      actor_user_id: admin.userId,
      subject_id: null,
      network: '127.0.0.1',
      changes: Object.fromEntries(Object.entries(set).map(([name, after]) => [name, { before: null, after }])),
    });
    expect(row.changes.from.after.address).toBe('hello@example.com');
    await admin.put(path, { ...input, password: 'Anderes-Wort-4711' });
    expect((await app.audit()).at(-1).changes).toEqual({ password: { before: '[secret]', after: '[secret]' } });
    await admin.delete(path);
    expect((await app.audit()).at(-1).changes).toMatchObject({
      host: { before: host, after: null },
      password: { before: '[secret]', after: null },
    });
    expect(JSON.stringify(await app.audit())).not.toContain(secret);
  });

  it('200: the password stands in clear nowhere (AUDIT-6)', async () => {
    await app.services.db.read.selectFrom('settings').selectAll().execute();
    const files = readdirSync(app.dataDir).map((name) => readFileSync(join(app.dataDir, name), 'latin1'));
    const everything = [...files, ...app.logLines, JSON.stringify(await app.audit())].join('\n');
    for (const form of [
      secret,
      Buffer.from(secret).toString('base64').slice(0, -4),
      'mara:',
      encodeURIComponent(secret),
    ])
      expect(everything).not.toContain(form);
    expect(content()).toMatch(/^eyJ[\w-]+\.\.[\w-]+\.[\w-]+\.[\w-]+$/);
  });

  it.each([
    ['no port and no user', {}, { port: 587, security: 'opportunistic' }],
    ['a user elsewhere', { username: 'mara', password: 'x' }, { port: 587, security: 'starttls' }],
    ['a user on this machine', { host: '127.0.0.1', username: 'm', password: 'x' }, { security: 'opportunistic' }],
    ['port 465', { port: 465 }, { port: 465, security: 'tls' }],
    ['tls', { security: 'tls' }, { port: 465, security: 'tls' }],
    ['port 25', { port: 25 }, { port: 25, security: 'opportunistic' }],
    ['an address of IPv6', { host: '2606:4700::7' }, { host: '2606:4700::7' }],
    ['a user without encryption, as wished', { security: 'none', username: 'm', password: 'x' }, { security: 'none' }],
    ['an empty user', { username: '' }, { username: null, hasPassword: false }],
    ['null for the user', { username: null, password: 'left over' }, { username: null, hasPassword: false }],
  ])('200: %s (MAIL-8, MAIL-12)', async (_case, given, expected) => {
    const { status, body } = await admin.put(path, { host: 'relay.example.com', from: 'a@example.com', ...given });
    expect(status).toBe(200);
    expect(body).toMatchObject(expected);
  });

  it('200: without a password, the stored one stays for the same host, port and username (MAIL-12)', async () => {
    const kept = { ...withoutPassword, security: 'tls', from: 'Other <other@example.com>' };
    for (const given of [kept, { ...kept, password: '' }]) {
      const { status, body } = await admin.put(path, given);
      expect([status, body.from, body.security, body.hasPassword]).toEqual([200, given.from, 'tls', true]);
      expect(await password()).toBe(secret);
    }
  });

  it.each([
    ['another host', { host: 'evil.example.com' }],
    ['another spelling of the host', { host: 'mail.example.com.evil.example.com' }],
    ['another port', { port: 2526 }],
    ['the usual port', { port: undefined }],
    ['another username', { username: 'eve' }],
    ['the username in another case', { username: 'Mara' }],
  ])('400: without a password and with %s, and nothing changes (MAIL-12)', async (_case, given) => {
    const before = content();
    for (const empty of [{}, { password: '' }]) {
      const { status, body } = await admin.put(path, { ...withoutPassword, ...given, ...empty });
      expect([status, body.error.code, body.error.details]).toEqual([400, 'VALIDATION_ERROR', [missing]]);
    }
    expect(content()).toBe(before);
    expect((await app.audit()).at(-1)?.action).toBe('settings.mail-set');
  });

  it('400: what was stored without a user, or removed, leaves no password behind (MAIL-12)', async () => {
    expect((await admin.put(path, { ...withoutPassword, username: null })).status).toBe(200);
    expect((await admin.put(path, withoutPassword)).body.error.details).toEqual([missing]);
    await admin.put(path, input);
    await admin.delete(path);
    expect((await admin.put(path, withoutPassword)).body.error.details).toEqual([missing]);
  });

  it('400: the password of the configuration is not taken over (MAIL-12)', async () => {
    const other = await TestApp.start({ SMTP_URL: `smtp://mara:${secret}@mail.example.com:2525` });
    const its = await other.setUp();
    expect((await its.put(path, withoutPassword)).body.error.details).toEqual([missing]);
    await other.close();
  });

  const crlf = 'Example\r\nBcc: eve@evil.example <hello@example.com>';
  const bad: readonly (readonly [string, unknown])[] = [
    ['host', undefined],
    ['host', ''],
    ['host', ' mail.example.com'],
    ['host', 'mail.example.com\r\nQUIT'],
    ['host', 'mail.example.com:25'],
    ['host', 'smtp://mail.example.com'],
    ['host', 'user@mail.example.com'],
    ['host', 'mail..example.com'],
    ['host', `${'a'.repeat(64)}.example.com`],
    ['host', `${'a.'.repeat(127)}example.com`],
    ['host', 'x'.repeat(500_000)],
    ['host', '/var/run/smtp.sock'],
    ['host', ['mail.example.com']],
    ['host', null],
    ['port', 0],
    ['port', -1],
    ['port', 65_536],
    ['port', 25.5],
    ['port', '587'],
    ['port', 1e9],
    ['port', null],
    ['security', 'TLS'],
    ['security', 'ssl'],
    ['security', true],
    ['username', 'ma\nra'],
    ['username', 'ma\u202era'],
    ['username', 'm'.repeat(256)],
    ['username', 7],
    ['password', 'x'.repeat(1_001)],
    ['password', 7],
    ['password', null],
    ['from', undefined],
    ['from', ''],
    ['from', 'nobody'],
    ['from', crlf],
    ['from', 'hello@example.com\r\nBcc: eve@evil.example'],
    ['from', 'hello@example.com, eve@evil.example'],
    ['from', 'Example <hello@example.com>, eve@evil.example'],
    ['from', 'Example <hello@example.com'],
    ['from', 'Eve <eve@evil.example> <hello@example.com>'],
    ['from', `${'n'.repeat(101)} <hello@example.com>`],
    ['from', 'Ex\u2028ample <hello@example.com>'],
    ['from', 'Ex\u0007ample <hello@example.com>'],
    ['from', `<hello@${'x'.repeat(300)}.com>`],
    ['from', '<>'],
    ['from', 'x<'.repeat(250_000)],
  ];
  const shown = bad.map(
    ([field, value]) =>
      [field, (value === undefined ? 'left out' : JSON.stringify(value)).slice(0, 60), value] as const,
  );
  it.each(shown)('400: %s %s, and nothing changes (MAIL-12)', async (field, _shown, value) => {
    const before = content();
    const { status, body, text } = await admin.put(path, { ...input, [field]: value });
    expect([status, body.error.code]).toEqual([400, 'VALIDATION_ERROR']);
    const fields = body.error.details.map((problem: { field: string }) => problem.field);
    expect(new Set(fields)).toEqual(new Set([`body.${field}`]));
    expect(text.length).toBeLessThan(1_000);
    expect(text).not.toContain(secret);
    expect(content()).toBe(before);
  });

  it('413: more than a megabyte; 400: no object at all', async () => {
    expect((await admin.put(path, { ...input, from: 'x'.repeat(1_048_577) })).status).toBe(413);
    for (const body of [[], 'smtp://mail.example.com', null]) expect((await admin.put(path, body)).status).toBe(400);
  });

  it('200: a sender that is answered can be sent back, and stays the same (MAIL-12)', async () => {
    for (const from of ['""Ann"" <a@example.com>', '"A" and "B" <a@example.com>', '<a@example.com>']) {
      const first = await admin.put(path, { ...input, from });
      const again = await admin.put(path, { ...input, from: first.body.from });
      expect([first.status, again.body.from]).toEqual([200, first.body.from]);
    }
  });

  it('403: for members and for every token; 401: for no one; nothing changes (AUDIT-4, SCOPE-27)', async () => {
    const before = content();
    const member = await app.member(admin, 'grace@example.com');
    const narrow = await admin.token({ scopes: ['org:write', 'user:invite'] });
    const wide = await admin.token();
    const callers = [member, await member.token(), narrow, wide, app.anonymous, app.service(['FETCH_CONFIG'])];
    const responses: TestResponse[] = [];
    for (const caller of callers) responses.push(await caller.put(path, { host: 'evil.example.com' }));
    expect(responses.map(({ status }) => status)).toEqual([403, 403, 403, 403, 401, 401]);
    // Mail with links to every account would go to the bearer of the token.
    expect((await wide.put(path, input)).body.error.code).toBe('FORBIDDEN');
    expect(content()).toBe(before);
  });

  it('200: holds for the very next mail (MAIL-9)', async () => {
    const login = { username: 'mara', password: secret };
    const [first, second] = [await MailServer.start({ login }), await MailServer.start()];
    const at = { host: '127.0.0.1', security: 'none', from: 'Example <hello@example.com>' };
    expect((await admin.put(path, { ...at, port: first.port, ...login })).status).toBe(200);
    expect((await admin.post(`${path}/test`)).status).toBe(200);
    expect((await admin.put(path, { ...at, port: second.port })).status).toBe(200);
    expect((await admin.post(`${path}/test`)).status).toBe(200);
    expect([first, second].map(({ mails }) => mails.map(({ username, sender }) => [username, sender]))).toEqual([
      [['mara', 'hello@example.com']],
      [[null, 'hello@example.com']],
    ]);
    await first.until(() => first.open === 0, 'the replaced server to be left');
    await Promise.all([first.stop(), second.stop()]);
  });
});

describe('/configurationManager/smtpConfig, as earlier clients call it (FIT-79)', () => {
  const alias = '/configurationManager/smtpConfig';
  const { from, ...rest } = input;
  const earlier = { ...rest, fromEmail: from };

  it('200: sets and shows what /settings/smtp does, and never the password', async () => {
    const set = await admin.post(alias, earlier);
    const shown = (await admin.get(path)).body;
    expect([set.status, set.body]).toEqual([200, { ...shown, fromEmail: from }]);
    const get = await admin.get(alias);
    expect([get.status, get.body]).toEqual([200, set.body]);
    expect(set.text + get.text).not.toContain(secret);
    expect(await password()).toBe(secret);
    expect((await app.audit()).at(-1)).toMatchObject({ action: 'settings.mail-set', actor_user_id: admin.userId });
    expect(JSON.stringify(await app.audit())).not.toContain(secret);
  });

  it('400 and 403: unknown keys, and who may not, as there', async () => {
    const before = content();
    const wrong = await admin.post(alias, { ...earlier, from });
    expect([wrong.status, wrong.body.error.details[0].field]).toEqual([400, 'body.from']);
    expect((await admin.post(alias, { ...earlier, fromEmail: 'x' })).status).toBe(400);
    const token = await admin.token();
    expect([(await token.post(alias, earlier)).status, (await token.get(alias)).status]).toEqual([403, 200]);
    const member = await app.member(admin, 'earlier@example.com');
    expect([(await member.post(alias, earlier)).status, (await member.get(alias)).status]).toEqual([403, 403]);
    expect(content()).toBe(before);
  });
});
