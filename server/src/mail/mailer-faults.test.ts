import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MailServer, mailCertificate } from '../../test/support/mail-server.ts';
import { drip, except, RawMailServer, type Script } from '../../test/support/raw-mail-server.ts';
import { TestClock } from '../../test/support/test-clock.ts';
import { Secret } from '../base/secret.ts';
import type { Mail, MailSettings } from './mail.ts';
import { MailError } from './mail-error.ts';
import { type Mailer, openMailer } from './mailer.ts';

/** For what takes all its time: less than in earnest, but enough to get to what hangs. */
const shortMs = 2_000;
const token = 'Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYm';
const mail: Mail = {
  to: 'ada@x.test',
  subject: 'Come in',
  text: `Good day.\n\nhttps://latchkey.test/reset-password#token=${token}\n\nYour code is 493827.\n`,
  html: '<p>Good day.</p>',
};

let server: MailServer;
let mailer: Mailer;

beforeEach(async () => {
  server = await MailServer.start();
  mailer = open();
});
afterEach(async () => {
  await mailer.close();
  await server.stop();
});

function open(given: Partial<MailSettings> = {}, parts: { ca?: string; mailMsMax?: number } = {}): Mailer {
  const from = { name: null, address: 'no-reply@latchkey.test' };
  const settings = { host: '127.0.0.1', port: server.port, security: 'opportunistic', login: null, from } as const;
  return openMailer({ ...settings, ...given }, { clock: new TestClock(), ...parts });
}

/** Another mailer, and another kind of server at the same port. */
async function reopen(kind: Parameters<MailServer['listen']>[0], ...given: Parameters<typeof open>): Promise<void> {
  await mailer.close();
  await server.stop();
  await server.listen(kind);
  mailer = open(...given);
}

/** Returns the failure of the mail. */
async function failure(sender = mailer): Promise<{ kind: string; said: string }> {
  const outcome = await sender.send(mail).then(
    (said) => new Error(`sent: ${said}`),
    (error: unknown) => error,
  );
  if (!(outcome instanceof MailError)) throw outcome;
  expect(outcome.serverMessage).toMatch(/^\P{Cc}{1,300}$/u);
  expect(outcome.message).toBe(`${outcome.kind}: ${outcome.serverMessage}`);
  return { kind: outcome.kind, said: outcome.serverMessage };
}

const saying = (pattern: RegExp): string => expect.stringMatching(pattern) as string;

describe('a mail server (MAIL-7)', () => {
  it('that refuses the connection is unreachable, and found again when it is back', async () => {
    await server.stop();
    expect(await failure()).toEqual({ kind: 'unreachable', said: saying(/ECONNREFUSED/) });
    await server.listen();
    expect(await mailer.send(mail)).toMatch(/^250/);
  });

  it('that hangs up before it says a word is unreachable, after one more try', async () => {
    server.faults = { dropConnections: true };
    expect(await failure()).toMatchObject({ kind: 'unreachable' });
    expect(server.connections).toBe(2);
  });

  it('that hangs up instead of answering to the recipient is unreachable', async () => {
    server.faults = { dropAtRecipient: () => true };
    expect(await failure()).toEqual({ kind: 'unreachable', said: saying(/closed/i) });
  });

  it('that hangs up instead of answering to the mail is unreachable, and is not given the mail twice', async () => {
    server.faults = { dropAfterData: () => true };
    expect(await failure()).toEqual({ kind: 'unreachable', said: saying(/closed/i) });
    server.faults = {};
    await mailer.send({ ...mail, to: 'bob@x.test' });
    expect(server.asked).toEqual(['ada@x.test', 'bob@x.test']);
  });

  it('that does not answer to a mail makes it late, and loses the connection', async () => {
    await reopen({}, {}, { mailMsMax: shortMs });
    server.faults = { hang: () => true };
    expect(await failure()).toEqual({ kind: 'late', said: 'The mail server did not take the mail in time.' });
    expect(server.hanging).toBe(1);
    await server.until(() => server.open === 0, 'the connection to be closed');
    server.faults = {};
    expect(await mailer.send(mail)).toMatch(/^250/);
  });

  it('that is closing down is unreachable', async () => {
    server.faults = { refuse: () => 421 };
    expect(await failure()).toEqual({ kind: 'unreachable', said: saying(/421/) });
  });

  it.each([450, 452, 550, 554])(
    'that answers %i to a recipient refuses the mail, and keeps the connection',
    async (status) => {
      server.faults = { refuse: (address) => (address === 'ada@x.test' ? status : null) };
      expect(await failure()).toEqual({
        kind: 'refused',
        said: saying(new RegExp(`${status} <ada@x\\.test> is not wanted`)),
      });
      await mailer.send({ ...mail, to: 'bob@x.test' });
      // There may be two by now: the first one is not free before it has said RSET.
      expect(server.open).toBe(server.connections);
      expect(server.mails.map(({ to }) => to)).toEqual([['bob@x.test']]);
    },
  );

  it('that quotes a mail which it refuses gives away neither link nor code (MAIL-2)', async () => {
    const raw = await RawMailServer.start(
      except('.', (socket) =>
        socket.write(`554 Not with ${mail.text.replaceAll('\n', ' ')} in it ${'!'.repeat(400)}\r\n`),
      ),
    );
    const other = open({ port: raw.port });
    const { kind, said } = await failure(other);
    expect(kind).toBe('refused');
    expect(said).toMatch(/^Message failed: 554 Not with Good day\..*#token=\[…\].*Your code is \[…\]\. in it !+$/);
    await other.close();
    await raw.stop();
  });
});

describe('a connection that is not as safe as it should be', () => {
  it.each(['tls', 'starttls', 'opportunistic'] as const)(
    'is not used with %s and a password when the certificate is no one known (MAIL-8)',
    async (security) => {
      const signsIn = { login: { username: 'mara', password: new Secret('correct horse') } };
      await reopen({ security: security === 'tls' ? 'tls' : 'offered' }, { security, ...signsIn });
      expect(await failure()).toEqual({ kind: 'unreachable', said: saying(/self-signed certificate/) });
      expect(server.asked).toEqual([]);
    },
  );

  it.each(['tls', 'starttls', 'opportunistic'] as const)(
    'is not used with %s and a password when the certificate is for another name (MAIL-8)',
    async (security) => {
      await reopen(
        { security: security === 'tls' ? 'tls' : 'offered' },
        { security, host: 'localhost', login: { username: 'mara', password: new Secret('correct horse') } },
        { ca: mailCertificate },
      );
      expect(await failure()).toEqual({ kind: 'unreachable', said: saying(/does not match certificate/) });
      expect(server.asked).toEqual([]);
    },
  );

  it.each(['127.0.0.1', 'localhost'])(
    'is used with opportunistic and nothing to sign in with, whatever the certificate of %s (FIT-24)',
    async (host) => {
      await reopen({ security: 'offered' }, { security: 'opportunistic', host });
      expect(await mailer.send(mail)).toMatch(/^250/);
      expect(server.mails).toMatchObject([{ isEncrypted: true, username: null }]);
    },
  );

  it('is used in clear with opportunistic and nothing to sign in with, where STARTTLS is offered and fails (FIT-24)', async () => {
    const raw = await RawMailServer.start((socket, line) => {
      if (line.startsWith('EHLO')) socket.write('250-raw.test\r\n250 STARTTLS\r\n');
      else if (line === 'STARTTLS') socket.write('454 TLS not available\r\n');
      else except('', () => socket.write('220 raw.test\r\n'))(socket, line);
    });
    const other = open({ port: raw.port });
    expect(await other.send(mail)).toMatch(/^250/);
    await other.close();
    await raw.stop();
  });

  it('is not used when STARTTLS is wanted and not offered', async () => {
    await reopen({}, { security: 'starttls' });
    expect(await failure()).toMatchObject({ kind: 'unreachable' });
    expect(server.asked).toEqual([]);
  });

  it('is told about when the server wants STARTTLS and none is set', async () => {
    await reopen({ security: 'required' }, { security: 'none' });
    expect(await failure()).toEqual({ kind: 'unreachable', said: saying(/530 Must issue a STARTTLS command first/) });
  });
});

describe('a sign-in', () => {
  const login = { username: 'mara', password: 'correct horse' };

  it('with a wrong password makes the server unreachable, and the password is not told', async () => {
    const wrong = 'battery5staple';
    await reopen({ login }, { login: { username: 'mara', password: new Secret(wrong) } });
    const { kind, said } = await failure();
    expect({ kind, said }).toEqual({ kind: 'unreachable', said: saying(/535 Invalid username or password/) });
    expect(server.asked).toEqual([]);
  });

  it('that the server quotes back is masked', async () => {
    const password = 'battery staple';
    const raw = await RawMailServer.start((socket, line) => {
      if (line === '') socket.write('220 raw.test\r\n');
      else if (line.startsWith('EHLO')) socket.write('250-raw.test\r\n250 AUTH PLAIN\r\n');
      else socket.write(`535 No: ${password}, ${line}\r\n`);
    });
    const other = open({ port: raw.port, login: { username: 'mara', password: new Secret(password) } });
    const { said } = await failure(other);
    expect(said).toMatch(/^Invalid login: 535 No: \[secret\], AUTH PLAIN \[secret\]$/);
    await other.close();
    await raw.stop();
  });

  it('that is missing makes the server unreachable', async () => {
    await reopen({ login });
    expect(await failure()).toEqual({ kind: 'unreachable', said: saying(/530/) });
  });
});

describe('a server that is none (MAIL-7)', () => {
  const everyMs = 50;
  const outcomes: readonly [string, string, Script][] = [
    ['says nothing', 'late', () => {}],
    ['greets a byte at a time', 'late', except('', drip('220-hello ', everyMs))],
    ['greets line by line', 'late', except('', drip('220-hello\r\n', 1))],
    ['answers to EHLO a byte at a time', 'late', except('EHLO', drip('250-hello\r\n', everyMs))],
    ['answers to a mail a byte at a time', 'late', except('.', drip('250-hello\r\n', everyMs))],
    ['never lets a line end', 'unreachable', except('', (socket) => socket.write('2'.repeat(2_000_000)))],
    ['speaks HTTP', 'unreachable', except('', (socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'))],
    ['resets the connection', 'unreachable', except('MAIL', (socket) => socket.resetAndDestroy())],
    ['has an end amid an answer', 'unreachable', except('.', (socket) => socket.end('25'))],
  ];
  it.each(outcomes)('and %s ends as %s, and the connection too', async (_, kind, script) => {
    const raw = await RawMailServer.start(script);
    const other = open({ port: raw.port }, kind === 'late' ? { mailMsMax: shortMs } : {});
    expect(await failure(other)).toMatchObject({ kind });
    // A goodbye that waits for an answer would take 5 seconds.
    await vi.waitUntil(() => raw.sockets.size === 0, { timeout: 4_000 });
    await other.close();
    await raw.stop();
  });
});
