import pino from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MailServer, type MailServerOptions } from '../../test/support/mail-server.ts';
import { except, RawMailServer } from '../../test/support/raw-mail-server.ts';
import { TestClock } from '../../test/support/test-clock.ts';
import { TokenEndpoint } from '../../test/support/token-endpoint.ts';
import { afterResponse } from '../base/after-response.ts';
import { Secret } from '../base/secret.ts';
import type { Mail, MailSettings } from './mail.ts';
import { type MailClient, mailClientOf } from './mail-client.ts';
import { MailError } from './mail-error.ts';
import { type MailService, openMailService } from './mail-service.ts';

const mail: Mail = { to: 'ada@x.test', subject: 'Hello', text: 'Good day.\n', html: '<p>Good day.</p>' };
const list = (count: number) => Array.from({ length: count }, (_, index) => ({ ...mail, to: `p${index}@x.test` }));
const from = { name: null, address: 'no-reply@latchkey.test' };
const inEarnestMs = 60_000;

let server: MailServer;
let endpoint: TokenEndpoint;
let client: MailClient;
let given: Partial<MailSettings>;
let present: MailSettings | null;
let lines: string[];
let faults: string[];
let clock: TestClock;
let service: MailService;
let behind: ReturnType<typeof afterResponse>;

beforeEach(async () => {
  [server, endpoint] = [await MailServer.start(), await TokenEndpoint.start()];
  client = { name: 'id.example.com', connections: 2 };
  clock = new TestClock();
  [lines, faults, given] = [[], [], {}];
  const log = pino({ level: 'trace', base: null }, { write: (line) => void lines.push(line) });
  behind = afterResponse(log);
  const metrics = { countUpstreamFault: (error: string) => void faults.push(error) };
  const pauses = { waited: [1, 1, 1, 1, 1, 1, 1, 1], background: [1, 1, 1] };
  present = null;
  const parts = { clock, afterResponse: behind, metrics, log, pauses, client: () => client };
  service = openMailService({ ...parts, settings: async () => settings() });
});
afterEach(async () => {
  await behind.close();
  await service.close();
  await Promise.all([server.stop(), endpoint.stop()]);
});

/** The same object as long as nothing else is asked for. */
function settings(): MailSettings {
  present ??= { host: '127.0.0.1', port: server.port, security: 'none', login: null, from, ...given };
  return present;
}

function use(next: Partial<MailSettings>): void {
  [given, present] = [next, null];
}

async function serve(options: MailServerOptions): Promise<void> {
  await server.stop();
  await server.listen(options);
}

/** Returns the failure of a mail that a request waits for. */
async function failure(): Promise<MailError> {
  const outcome = await service.send(mail).catch((error: unknown) => error);
  if (!(outcome instanceof MailError)) throw new Error(`no failure: ${String(outcome)}`);
  return outcome;
}

const logged = (text: string) => lines.filter((line) => line.includes(text));

describe('the name in EHLO', () => {
  it.each([
    ['https://id.example.com/sub/path', 'id.example.com'],
    ['https://例え.jp', 'xn--r8jz45g.jp'],
    ['http://192.0.2.7:3000', '[192.0.2.7]'],
    ['http://[2001:db8::7]:3000', '[ipv6:2001:db8::7]'],
    ['http://localhost:3000', 'localhost'],
  ])('of %s is %s (FIT-20)', async (baseUrl, name) => {
    client = mailClientOf({ baseUrl, mailConnections: 2 });
    server.faults = { refuseName: (each) => each.toLowerCase() !== name };
    expect(await service.send(mail)).toMatch(/^250/);
    expect([...server.names].map((each) => each.toLowerCase())).toEqual([name]);
  });

  it('that a server refuses is named, with where it comes from (FIT-20, FIT-26)', async () => {
    client = { ...client, name: 'localhost' };
    server.faults = { refuseName: (name) => !name.includes('.') };
    const { serverMessage, hint } = await failure();
    expect(serverMessage).toContain('504 <localhost>: Helo command rejected: need fully-qualified hostname');
    expect(hint).toBe(
      'The server refuses the name localhost, which is the host of BASE_URL: set BASE_URL to the public address.',
    );
  });
});

describe('a server that allows few connections', () => {
  it('gets sixty mails over two, and turns none away (FIT-21)', async () => {
    server.faults = { connectionsMax: 3 };
    expect(await service.sendAll(list(60), { msMax: inEarnestMs })).toEqual(Array(60).fill(null));
    expect([server.turnedAway, server.openMost, server.mails.length]).toEqual([0, 2, 60]);
  });

  it('gets twenty mails where even two are too many: what it turned away is sent again (FIT-22)', async () => {
    server.faults = { connectionsMax: 1 };
    expect(await service.sendAll(list(20), { msMax: inEarnestMs })).toEqual(Array(20).fill(null));
    expect(server.turnedAway).toBeGreaterThan(0);
    expect(new Set(server.mails.map(({ to }) => to.join())).size).toBe(20);
    expect(server.mails).toHaveLength(20);
  });

  it('makes an administrator lower MAIL_CONNECTIONS (FIT-26)', async () => {
    server.faults = { connectionsMax: 0 };
    const { kind, serverMessage, hint } = await failure();
    expect([kind, serverMessage]).toEqual([
      'unreachable',
      expect.stringContaining('421 Too many concurrent connections'),
    ]);
    expect(hint).toContain('lower MAIL_CONNECTIONS');
  });
});

describe('a mail that is put off with 451', () => {
  it('goes out within the time of its request (FIT-22)', async () => {
    server.faults = { greylistTimes: 2 };
    expect(await service.send(mail)).toMatch(/^250/);
    expect(await service.sendAll(list(3), { msMax: inEarnestMs })).toEqual([null, null, null]);
    expect(server.mails).toHaveLength(4);
  });

  it('fails with the reply where the time is over (FIT-22)', async () => {
    server.faults = { refuse: () => 451 };
    expect(await failure()).toMatchObject({
      kind: 'refused',
      isDeferred: true,
      serverMessage: expect.stringContaining('451'),
    });
    const [outcome] = (await service.sendAll([mail], { msMax: inEarnestMs })) ?? [];
    expect(outcome).toMatchObject({ kind: 'refused', serverMessage: expect.stringContaining('451') });
  });

  it('goes out behind a request that does not wait, and is logged once until then (FIT-23)', async () => {
    server.faults = { greylistTimes: 3 };
    service.sendLater('welcome', mail);
    await server.mailTo(mail.to);
    await vi.waitUntil(() => logged('a mail went out after further attempts').length === 1);
    expect([logged('a mail waits').length, logged('did not go out'), faults]).toEqual([1, [], []]);
  });

  it('counts as failed behind a request once the attempts are used up (FIT-23)', async () => {
    server.faults = { refuse: () => 451 };
    service.sendLater('welcome', mail);
    await vi.waitUntil(() => logged('a mail did not go out').length === 1);
    expect([server.asked.length, faults]).toEqual([4, ['mailFailed']]);
  });

  it('is not sent again after 550, nor after a server that hung up in the middle of it (FIT-23)', async () => {
    server.faults = { refuse: (address) => (address === 'a@x.test' ? 550 : null), dropAfterData: () => true };
    service.sendLater('refused', { ...mail, to: 'a@x.test' });
    service.sendLater('dropped', { ...mail, to: 'b@x.test' });
    await vi.waitUntil(() => logged('a mail did not go out').length === 2);
    expect(server.asked.toSorted()).toEqual(['a@x.test', 'b@x.test']);
  });

  /** A service with other pauses behind requests. */
  function withPauses(background: readonly number[]): MailService {
    const log = pino({ level: 'trace', base: null }, { write: (line) => void lines.push(line) });
    const metrics = { countUpstreamFault: () => {} };
    const pauses = { waited: [], background };
    return openMailService({ clock, afterResponse: behind, metrics, log, pauses, settings: async () => settings() });
  }

  it('goes out to a server that was gone for a while (FIT-23)', async () => {
    const patient = withPauses(Array.from({ length: 5_000 }, () => 5));
    await server.stop();
    patient.sendLater('welcome', mail);
    await vi.waitUntil(() => logged('a mail waits').length === 1);
    await server.listen();
    await server.mailTo(mail.to);
    await vi.waitUntil(() => logged('a mail went out after further attempts').length === 1);
    expect([server.mails.length, logged('did not go out')]).toEqual([1, []]);
    await patient.close();
  });

  it('is given up when the service stops, which the log says (FIT-23)', async () => {
    const patient = withPauses([inEarnestMs]);
    server.faults = { refuse: () => 451 };
    patient.sendLater('welcome', mail);
    await vi.waitUntil(() => logged('a mail waits').length === 1);
    await behind.close();
    await patient.close();
    expect(logged('a mail did not go out')).toHaveLength(1);
  });
});

describe('the cause that an administrator gets, in the words of the server (FIT-26)', () => {
  const login = { username: 'mara@x.test', password: new Secret('correct horse') };
  it.each([
    [
      'MAIL',
      '554 5.2.252 SendAsDenied; mara not allowed to send as no-reply@latchkey.test',
      /may not send as no-reply@latchkey.test/,
    ],
    [
      '.',
      '550 5.7.60 SMTP; Client does not have permissions to send as this sender',
      /may not send as no-reply@latchkey.test/,
    ],
    ['.', '554 Message rejected: Email address is not verified.', /may not send as/],
    [
      'AUTH',
      '535 5.7.139 Authentication unsuccessful, SmtpClientAuthentication is disabled for the Tenant.',
      /SMTP AUTH is switched off/,
    ],
    ['AUTH', '534-5.7.9 Application-specific password required.\r\n534 5.7.9 see support', /needs an app password/],
    ['AUTH', '535 5.7.8 Error: authentication failed', /user name mara@x.test or its password/],
    ['MAIL', '530 5.7.57 Client not authenticated to send mail', /security starttls or tls/],
    ['MAIL', '530 5.7.0 Must issue a STARTTLS command first', /encrypted connection/],
    ['RCPT', '554 5.7.1 <ada@x.test>: Relay access denied', /does not forward mail for this user/],
    ['.', '552 5.3.4 Message size exceeds fixed limit', /size limit/],
    ['.', '432 4.3.2 Concurrent connections limit exceeded', /lower MAIL_CONNECTIONS/],
    ['.', '454 Throttling failure: Maximum sending rate exceeded.', /for the time being/],
  ])('%s: %s', async (step, reply, hint) => {
    const raw = await RawMailServer.start((socket, line) => {
      if (line.startsWith(step)) socket.write(`${reply}\r\n`);
      else if (line.startsWith('EHLO')) socket.write('250-raw.test\r\n250 AUTH PLAIN\r\n');
      else if (line.startsWith('AUTH')) socket.write('235 OK\r\n');
      else except('none', () => {})(socket, line);
    });
    use({ port: raw.port, login });
    const error = await failure();
    expect(error.serverMessage).toContain(reply.split('\r\n')[0]);
    expect(error.hint).toMatch(hint);
    await raw.stop();
  });
});

describe('signing in by OAuth 2.0 (FIT-25)', () => {
  const secrets = () => [endpoint.clientSecret, 'Refresh-Token-4711', ...endpoint.accessTokens];

  async function withOauth2(change: Partial<MailSettings['oauth2']> = {}): Promise<void> {
    await serve({ accessTokens: endpoint.accessTokens });
    const oauth2 = {
      user: 'mailer@x.test',
      clientId: 'latchkey',
      clientSecret: new Secret(endpoint.clientSecret),
      refreshToken: new Secret('Refresh-Token-4711'),
      tokenUrl: endpoint.url,
      ...change,
    };
    use({ oauth2 });
  }

  it('takes one access token for many mails, and another one when it ends', async () => {
    await withOauth2();
    expect(await service.sendAll(list(10), { msMax: inEarnestMs })).toEqual(Array(10).fill(null));
    expect(server.mails[0]?.username).toBe('mailer@x.test');
    const { asked } = endpoint;
    expect(asked).toEqual([
      {
        grant_type: 'refresh_token',
        refresh_token: 'Refresh-Token-4711',
        client_id: 'latchkey',
        client_secret: endpoint.clientSecret,
      },
    ]);
    clock.advance(3_600_000);
    await serve({ accessTokens: endpoint.accessTokens });
    expect(await service.send(mail)).toMatch(/^250/);
    expect(asked).toHaveLength(2);
  });

  it('takes another access token where the server refuses the present one, and the refresh token that replaces it', async () => {
    await withOauth2();
    endpoint.nextRefreshToken = 'Refresh-Token-4712';
    await service.send(mail);
    endpoint.accessTokens.clear();
    await serve({ accessTokens: endpoint.accessTokens });
    expect(await service.send(mail)).toMatch(/^250/);
    expect(endpoint.asked.map(({ refresh_token: token }) => token)).toEqual([
      'Refresh-Token-4711',
      'Refresh-Token-4712',
    ]);
  });

  it('fails with the words of the token endpoint, without secrets', async () => {
    await withOauth2();
    endpoint.refreshToken = 'another one';
    const { kind, serverMessage, hint, isRepeatable } = await failure();
    const { host } = new URL(endpoint.url);
    expect([kind, serverMessage]).toEqual([
      'unreachable',
      `No access token from ${host}: it answered 400 invalid_grant: AADSTS70008: The refresh token [secret] has expired`,
    ]);
    expect([isRepeatable, hint]).toEqual([false, expect.stringContaining('SMTP_OAUTH2_REFRESH_TOKEN')]);
    expect(server.mails).toEqual([]);
  });

  it.each([
    ['answers 503', { status: 503, body: 'busy' }, { isRepeatable: true, text: '503' }],
    ['answers without a token', { status: 200, body: '{}' }, { isRepeatable: false, text: '200' }],
    ['redirects', { status: 302, body: '' }, { isRepeatable: false, text: '302' }],
    ['says too much', { status: 200, body: 'x'.repeat(100_000) }, { isRepeatable: false, text: 'larger than 64 KB' }],
  ])('fails where the endpoint %s', async (_, refusal, { isRepeatable, text }) => {
    await withOauth2();
    endpoint.refusal = refusal;
    expect(await failure()).toMatchObject({ isRepeatable, serverMessage: expect.stringContaining(text) });
  });

  it('fails where the endpoint is at an address that is not allowed, and asks nothing there (CONFIG-40)', async () => {
    await withOauth2();
    use({
      ...given,
      outboundNetworks: ['127.0.0.1/32'],
      oauth2: { ...settings().oauth2, tokenUrl: 'http://127.0.0.2:4711/' } as MailSettings['oauth2'] & object,
    });
    expect((await failure()).serverMessage).toContain('the address is not public');
    expect(endpoint.asked).toEqual([]);
  });

  it('fails where the server takes no access token, whatever it offers, and says nothing secret', async () => {
    await withOauth2();
    await serve({ accessTokens: new Set() });
    const { serverMessage, hint } = await failure();
    expect([serverMessage, hint]).toEqual([
      expect.stringMatching(/^Invalid login: 5/),
      expect.stringContaining('mailer@x.test'),
    ]);
    await serve({});
    await failure();
    expect(server.mails).toEqual([]);
    for (const secret of secrets()) expect(serverMessage + lines.join('')).not.toContain(secret);
  });
});
