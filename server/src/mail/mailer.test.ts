import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MailServer, mailCertificate } from '../../test/support/mail-server.ts';
import { TestClock } from '../../test/support/test-clock.ts';
import { Secret } from '../base/secret.ts';
import type { Mail, MailSettings } from './mail.ts';
import { MailError } from './mail-error.ts';
import { type Mailer, openMailer } from './mailer.ts';

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

function settings(given: Partial<MailSettings> = {}): MailSettings {
  const from = { name: 'Latchkey', address: 'no-reply@latchkey.test' };
  return { host: '127.0.0.1', port: server.port, security: 'opportunistic', login: null, from, ...given };
}

function open(given: Partial<MailSettings> = {}, parts: Omit<Parameters<typeof openMailer>[1], 'clock'> = {}): Mailer {
  return openMailer(settings(given), { clock: new TestClock(), ...parts });
}

/** Another mailer instead of the usual one. */
async function reopen(...given: Parameters<typeof open>): Promise<void> {
  await mailer.close();
  mailer = open(...given);
}

/** Another kind of server instead of the usual one, at the same port. */
async function restart(...given: Parameters<MailServer['listen']>): Promise<void> {
  await server.stop();
  await server.listen(...given);
}

function mail(given: Partial<Mail> = {}): Mail {
  return { to: 'ada@x.test', subject: 'Hello', text: 'Good day.\n', html: '<p>Good day.</p>', ...given };
}

/** Returns the failure of a mail. */
async function failure(sending: Promise<string>): Promise<Pick<MailError, 'kind' | 'serverMessage'>> {
  const outcome = await sending.then(
    (said) => new Error(`sent: ${said}`),
    (error: unknown) => error,
  );
  if (!(outcome instanceof MailError)) throw outcome;
  return { kind: outcome.kind, serverMessage: outcome.serverMessage };
}

describe('a mail', () => {
  it('arrives with text, HTML, sender and the date of the clock, marked as automatic', async () => {
    const said = await mailer.send(mail({ subject: 'Grüße', text: 'Zoë\n', html: '<p>Zoë</p>' }));
    expect(said).toMatch(/^250 OK/);
    const [got] = server.mails;
    expect(got).toMatchObject({
      to: ['ada@x.test'],
      sender: 'no-reply@latchkey.test',
      subject: 'Grüße',
      isEncrypted: false,
    });
    expect(got?.from).toBe('"Latchkey" <no-reply@latchkey.test>');
    expect([got?.text.trim(), got?.html.trim()]).toEqual(['Zoë', '<p>Zoë</p>']);
    const names = got?.headers.map((line) => line.split(':')[0]);
    expect(names?.toSorted()).toEqual([
      'Auto-Submitted',
      'Content-Type',
      'Date',
      'From',
      'MIME-Version',
      'Message-ID',
      'Subject',
      'To',
    ]);
    expect(got?.headers).toContain('Auto-Submitted: auto-generated');
    expect(got?.headers).toContain('Date: Fri, 27 Nov 2026 20:17:00 +0000');
  });

  it('keeps a long link whole', async () => {
    const link = `https://latchkey.test/${'a-long-path/'.repeat(20)}reset-password#token=${'x'.repeat(43)}`;
    await mailer.send(mail({ text: `Open this:\n\n${link}\n\nFrom us.\n` }));
    expect(server.mails[0]?.text.split('\n')).toContain(link);
  });

  it('names no sender where none is set', async () => {
    await reopen({ from: { name: null, address: 'no-reply@latchkey.test' } });
    await mailer.send(mail());
    expect(server.mails[0]?.headers).toContain('From: no-reply@latchkey.test');
  });
});

describe('text of people in a header', () => {
  it.each([
    ['CR LF and a header', 'Hello\r\nBcc: evil@evil.test\r\n'],
    ['CR LF twice', 'Hello\r\n\r\n<b>body</b>'],
    ['a lone LF', 'Hello\nBcc: evil@evil.test'],
    ['a lone CR', 'Hello\rBcc: evil@evil.test'],
    ['U+2028', 'Hello\u2028Bcc: evil@evil.test'],
    ['U+2029, U+0085 and a vertical tab', 'Hello\u2029Bcc:\u0085evil@evil.test\v'],
    ['NUL', 'Hello\0Bcc: evil@evil.test'],
    ['a lone surrogate', 'Hello\ud800\r\nBcc: evil@evil.test'],
    ['an encoded line end', 'Hello =?utf-8?Q?=0D=0ABcc:_evil@evil.test?='],
    ['an address', 'evil@evil.test, <evil@evil.test>'],
    ['quotes', '" <evil@evil.test>, "'],
    ['a great length', `Hello ${'\r\nBcc: evil@evil.test '.repeat(500)}`],
  ])('adds no header and no recipient with %s (MAIL-4)', async (_, text) => {
    await mailer.send(mail());
    await reopen({ from: { name: text, address: 'no-reply@latchkey.test' } });
    await mailer.send(mail({ subject: text }));
    const [plain, got] = server.mails;
    const names = (lines: readonly string[] = []) => lines.map((line) => line.split(':')[0]);
    expect(names(got?.headers)).toEqual(names(plain?.headers));
    expect(server.asked).toEqual(['ada@x.test', 'ada@x.test']);
    expect(got?.sender).toBe('no-reply@latchkey.test');
    expect(got?.headers.filter((line) => line.startsWith('From:'))).toEqual([
      expect.stringMatching(/^From: .* <no-reply@latchkey\.test>$/),
    ]);
    expect(`${got?.subject}${got?.from}`).toMatch(/^[^\p{Cc}\p{Zl}\p{Zp}]+$/u);
    expect(got?.text.trim()).toBe('Good day.');
  });
});

describe('an address that libraries read otherwise', () => {
  it.each([
    'victim,evil@evil.test',
    'victim@x.test,evil@evil.test',
    'victim;evil@evil.test',
    'x<evil@evil.test>',
    '<evil@evil.test>',
    'Victim <victim@x.test>',
    'a(c)b@x.test',
    'a@x.test(c)',
    'group:evil@evil.test;',
    'group: victim@x.test, evil@evil.test;',
    '"a b"@x.test',
    '"evil@evil.test"@x.test',
    '"evil@evil.test> RCPT TO:<evil@evil.test"@x.test',
    'a@x.test\r\nRCPT TO:<evil@evil.test>',
    'a@x.test ',
    ' a@x.test',
    'a@x.test\0',
    'a b@x.test',
    'a@@x.test',
    'evil@evil.test@x.test',
    'a@[evil@evil.test]',
    'a@ex\u00e4mple.test',
    'a@X.test',
    'a@\uff58.test',
    'a@x\u3002test',
    '=?utf-8?Q?evil=40evil.test?=@x.test,',
    '@x.test',
    'a',
    ',',
    '',
  ])('gets no mail, and no one else does: %j (MAIL-3)', async (to) => {
    expect(await failure(mailer.send(mail({ to })))).toEqual({
      kind: 'address',
      serverMessage: 'The mail library would not deliver to exactly the stored address.',
    });
    expect(server.connections).toBe(0);
  });

  it.each(['a@x.test', "o'brien+tag.more@sub.x.test", 'a/b=c!#$%&*?^_`{|}~@x.test', 'a@xn--exmple-cua.test'])(
    'is not one such as %s (MAIL-3)',
    async (to) => {
      await mailer.send(mail({ to }));
      expect(server.mails.map((got) => got.to)).toEqual([[to]]);
    },
  );
});

describe('a connection', () => {
  it.each([1, 2, 10])('is used again, and there are never more than %i (FIT-21, MAIL-7)', async (connections) => {
    await reopen({}, { client: { name: 'id.example.com', connections } });
    await mailer.send(mail());
    await mailer.send(mail());
    expect([server.connections, server.mails.length]).toEqual([1, 2]);
    server.faults = { delayMs: 5 };
    await Promise.all(Array.from({ length: 60 }, (_, index) => mailer.send(mail({ to: `p${index}@x.test` }))));
    expect([server.connections, server.openMost]).toEqual([connections, connections]);
    expect(new Set(server.mails.map(({ to }) => to.join())).size).toBe(61);
  });

  it('that the server has ended meanwhile is replaced, and the mail goes out once', async () => {
    await mailer.send(mail());
    await restart();
    await mailer.send(mail({ to: 'bob@x.test' }));
    expect(server.mails.map(({ to }) => to)).toEqual([['ada@x.test'], ['bob@x.test']]);
  });

  it.each([
    ['tls', 'tls'],
    ['required', 'starttls'],
    ['offered', 'starttls'],
    ['offered', 'opportunistic'],
  ] as const)('of a server with TLS %s is encrypted with %s, and signs in', async (offer, security) => {
    const login = { username: 'mara', password: 'a b:c@d' };
    await restart({ security: offer, login });
    await reopen({ security, login: { ...login, password: new Secret(login.password) } }, { ca: mailCertificate });
    await mailer.send(mail());
    expect(server.mails).toMatchObject([{ isEncrypted: true, username: 'mara' }]);
  });

  it('is plain with none, even where the server offers more', async () => {
    await restart({ security: 'offered' });
    await reopen({ security: 'none' });
    await mailer.send(mail());
    expect(server.mails).toMatchObject([{ isEncrypted: false, username: null }]);
  });
});

describe('the caller', () => {
  it('ends a mail by its signal, under way or waiting, and others go on (MAIL-7)', async () => {
    server.faults = { hang: (address) => address.startsWith('hangs') };
    const over = new AbortController();
    const hanging = Array.from({ length: 2 }, (_, index) =>
      failure(mailer.send(mail({ to: `hangs${index}@x.test` }), over.signal)),
    );
    await server.until(() => server.hanging === 2, 'two mails that hang');
    const waiting = failure(mailer.send(mail({ to: 'waits@x.test' }), over.signal));
    const other = mailer.send(mail({ to: 'goes@x.test' }));
    await setImmediate();
    over.abort();
    expect(new Set((await Promise.all([...hanging, waiting])).map(({ kind }) => kind))).toEqual(new Set(['late']));
    expect(await other).toMatch(/^250/);
    expect(server.mails.map(({ to }) => to)).toEqual([['goes@x.test']]);
    expect(server.asked).not.toContain('waits@x.test');
    await server.until(() => server.open <= 1, 'the connections that hang to be closed');
  });

  it('whose time is over already connects to no one', async () => {
    expect(await failure(mailer.send(mail(), AbortSignal.abort()))).toMatchObject({ kind: 'late' });
    expect(server.connections).toBe(0);
  });

  it('who closes gives up what is under way, and what comes later', async () => {
    server.faults = { hang: () => true };
    const hanging = failure(mailer.send(mail()));
    await server.until(() => server.hanging === 1, 'a mail that hangs');
    await mailer.close();
    const closed = { kind: 'unreachable', serverMessage: 'The connection to the mail server was closed.' };
    expect(await hanging).toEqual(closed);
    expect(await failure(mailer.send(mail()))).toEqual(closed);
    await server.until(() => server.open === 0, 'the connection to be closed');
    expect([server.connections, server.mails.length]).toEqual([1, 0]);
  });

  it('leaves no listener on a signal that outlives the mail', async () => {
    let listeners = 0;
    const { signal } = new AbortController();
    const [add, remove] = [signal.addEventListener, signal.removeEventListener];
    signal.addEventListener = (...given: Parameters<typeof add>) => {
      listeners += 1;
      add.apply(signal, given);
    };
    signal.removeEventListener = (...given: Parameters<typeof remove>) => {
      listeners -= 1;
      remove.apply(signal, given);
    };
    await mailer.send(mail(), signal);
    expect(listeners).toBe(0);
  });
});
