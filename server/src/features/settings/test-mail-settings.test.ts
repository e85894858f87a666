import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MailServer } from '../../../test/support/mail-server.ts';
import { except, RawMailServer } from '../../../test/support/raw-mail-server.ts';
import { nextTurn, secondConnection } from '../../../test/support/second-connection.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';
import { minute } from '../../base/clock.ts';
import { encryptMailSettings } from './public.ts';

const path = '/settings/smtp';
const secret = 'Geheim-4711-Wort';
const from = 'Example <hello@example.com>';

describe('POST /settings/smtp/test', () => {
  let app: TestApp;
  let admin: Client;
  let server: MailServer;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    server = await MailServer.start();
    await set({});
  });
  afterEach(() => server.stop());

  async function set(given: Readonly<Record<string, unknown>>): Promise<void> {
    const input = { host: '127.0.0.1', port: server.port, security: 'none', from, ...given };
    expect((await admin.put(path, input)).status).toBe(200);
  }

  /** Returns the message that an administrator gets of a failed mail, and checks that nothing else was disclosed. */
  async function failure(): Promise<string> {
    app.logLines.length = 0;
    const { status, body, text } = await admin.post(`${path}/test`);
    expect([status, body.error.code]).toEqual([502, 'UPSTREAM_BAD_ANSWER']);
    const [, said = ''] = /^The test mail did not go out: (.+)$/.exec(body.message) ?? [];
    const warnings: Json[] = app.logLines.map((line) => JSON.parse(line)).filter(({ level }) => level >= 40);
    expect(warnings.map(({ level, refusal: error, requestId }) => [level, error, requestId])).toEqual([
      [40, 'testMailFailed', body.error.requestId],
    ]);
    expect(warnings[0]?.cause).toContain(said);
    for (const form of [secret, Buffer.from(secret).toString('base64')])
      expect(text + app.logLines.join('\n')).not.toContain(form);
    return said;
  }

  it('200: sends the caller a mail, answers what the server said, and records it (MAIL-11, AUDIT-1)', async () => {
    const { status, body } = await admin.post(`${path}/test`);
    expect([status, body]).toEqual([
      200,
      { message: 'Test mail sent successfully', to: 'ada@example.com', response: expect.stringMatching(/^250 /) },
    ]);
    expect(server.mails).toHaveLength(1);
    expect(server.mails[0]).toMatchObject({ to: ['ada@example.com'], sender: 'hello@example.com' });
    expect(server.mails[0]?.text).toContain('Example Ltd');
    expect((await app.audit()).at(-1)).toMatchObject({ action: 'settings.mail-tested', actor_user_id: admin.userId });
  });

  it('200: signs in with the stored password', async () => {
    const login = { username: 'mara', password: secret };
    await server.stop();
    await server.listen({ login });
    await set(login);
    expect((await admin.post(`${path}/test`)).status).toBe(200);
    expect(server.mails[0]?.username).toBe('mara');
  });

  it('200: another process’s settings are tried out at once (MAIL-9)', async () => {
    const other = await MailServer.start();
    const content = await encryptMailSettings(app.services.encryption, {
      host: '127.0.0.1',
      port: other.port,
      security: 'none',
      login: null,
      from: { name: null, address: 'other@example.com' },
    });
    const store = secondConnection(app);
    store.prepare("UPDATE settings SET content = ? WHERE name = 'smtp'").run(content);
    store.close();
    await nextTurn();
    expect((await admin.post(`${path}/test`)).status).toBe(200);
    expect([server.mails.length, other.mails.map(({ sender }) => sender)]).toEqual([0, ['other@example.com']]);
    await other.stop();
  });

  it('400: mail is not configured (MAIL-1)', async () => {
    await admin.delete(path);
    const { status, body } = await admin.post(`${path}/test`);
    expect([status, body.error.code, body.message]).toEqual([400, 'BAD_REQUEST', expect.stringContaining('SMTP_URL')]);
  });

  it('502: a wrong password, which no one is told (MAIL-11)', async () => {
    await server.stop();
    await server.listen({ login: { username: 'mara', password: 'the right one' } });
    await set({ username: 'mara', password: secret });
    expect(await failure()).toMatch(/535 Invalid username or password/);
    expect(server.mails).toEqual([]);
  });

  it('502: a server that quotes the password (MAIL-2, MAIL-11)', async () => {
    const raw = await RawMailServer.start((socket, line) => {
      if (line === '') socket.write('220 raw.test\r\n');
      else if (line.startsWith('EHLO')) socket.write('250-raw.test\r\n250 AUTH PLAIN\r\n');
      else socket.write(`535 No: ${secret}, ${line}\r\n`);
    });
    await set({ port: raw.port, username: 'mara', password: secret });
    expect(await failure()).toMatch(/535 No: \[secret\], AUTH PLAIN \[secret\]/);
    await raw.stop();
  });

  it('502: a refused connection (MAIL-11)', async () => {
    await server.stop();
    expect(await failure()).toMatch(/^no valid response, from an address that is not public/);
    expect(app.logLines.join()).toContain('ECONNREFUSED');
    await server.listen();
    expect((await admin.post(`${path}/test`)).status).toBe(200);
  });

  it.each(['tls', 'starttls'] as const)('502: a certificate of no one known, with %s (MAIL-8)', async (security) => {
    await server.stop();
    await server.listen({ security: security === 'tls' ? 'tls' : 'offered' });
    await set({ security });
    expect(await failure()).toMatch(/^no valid response, from an address that is not public/);
    expect(app.logLines.join()).toContain('self-signed certificate');
    expect(server.asked).toEqual([]);
  });

  it('502: STARTTLS is wanted on either side and missing on the other (MAIL-8)', async () => {
    await set({ security: 'starttls', username: 'mara', password: secret });
    expect(await failure()).toMatch(/STARTTLS/i);
    await server.stop();
    await server.listen({ security: 'required' });
    await set({});
    expect(await failure()).toMatch(/530 Must issue a STARTTLS command first/);
  });

  it('502: the recipient is refused; what the server said fits on a line (MAIL-11)', async () => {
    server.faults = { refuse: () => 550 };
    expect(await failure()).toMatch(/550 <ada@example\.com> is not wanted here/);
    const raw = await RawMailServer.start(
      except('RCPT', (socket) => socket.write(`550-<b>\u0000\u001b[31m\r\n550 ${'!'.repeat(900)}\r\n`)),
    );
    await set({ port: raw.port });
    expect(await failure()).toMatch(/^\P{Cc}{100,300}$/u);
    await raw.stop();
  });

  it('403: for members and for tokens without org:admin; 401: for no one; nothing is sent (AUDIT-4)', async () => {
    const member = await app.member(admin, 'grace@example.com');
    const narrow = await admin.token({ scopes: ['org:write', 'user:invite'] });
    const tokens = [await member.token(), narrow];
    // The notices of new tokens go out behind them; and so would mail of a refused call.
    const settled = () => app.services.afterResponse.close();
    await settled();
    const { connections, asked } = server;
    const before = { connections, asked: [...asked] };
    const statuses: number[] = [];
    for (const caller of [member, ...tokens, app.anonymous, app.service(['FETCH_CONFIG'])])
      statuses.push((await caller.post(`${path}/test`)).status);
    await settled();
    expect(statuses).toEqual([403, 403, 403, 401, 401]);
    expect({ connections: server.connections, asked: server.asked }).toEqual(before);
    expect((await (await admin.token({ scopes: ['org:admin'] })).post(`${path}/test`)).status).toBe(200);
  });

  it('429: the eleventh in a minute, without a mail (ERR-24)', async () => {
    const limited = await TestApp.start({ RATE_LIMIT: 'on', SMTP_URL: server.url });
    const its = await limited.setUp();
    for (let count = 0; count < 10; count += 1) expect((await its.post(`${path}/test`)).status).toBe(200);
    const { status, body, headers } = await its.post(`${path}/test`);
    expect([status, body.error.code, headers.get('retry-after')]).toEqual([429, 'RATE_LIMITED', '60']);
    expect(server.mails).toHaveLength(10);
    limited.clock.advance(minute);
    expect((await its.post(`${path}/test`)).status).toBe(200);
    await limited.close();
  });
});
