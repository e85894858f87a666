import pino from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MailServer } from '../../test/support/mail-server.ts';
import { TestClock } from '../../test/support/test-clock.ts';
import { type AfterResponse, afterResponse } from '../base/after-response.ts';
import type { Mail, MailSettings } from './mail.ts';
import { type MailService, openMailService } from './mail-service.ts';
import type { Mailer } from './mailer.ts';

const token = 'Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYm';
const mail: Mail = { to: 'ada@x.test', subject: 'Hello', text: `#token=${token}\n`, html: '<p>Good day.</p>' };

let first: MailServer;
let second: MailServer;
let present: MailSettings | null;
let lines: string[];
let faults: string[];
let behind: AfterResponse;
let service: MailService;

beforeEach(async () => {
  [first, second] = [await MailServer.start(), await MailServer.start()];
  present = settingsOf(first);
  [lines, faults] = [[], []];
  const log = pino({ level: 'trace', base: null }, { write: (line) => void lines.push(line) });
  behind = afterResponse(log);
  const metrics = { countUpstreamFault: (error: string) => void faults.push(error) };
  const settings = async () => present;
  const pauses = { waited: [1], background: [1, 1] };
  service = openMailService({ clock: new TestClock(), afterResponse: behind, metrics, log, settings, pauses });
});
afterEach(async () => {
  await behind.close();
  await service.close();
  await Promise.all([first.stop(), second.stop()]);
});

function settingsOf({ port }: MailServer): MailSettings {
  const from = { name: null, address: 'no-reply@latchkey.test' };
  return { host: '127.0.0.1', port, security: 'none', login: null, from };
}

const send = (to = mail.to) => service.use((mailer) => mailer.send({ ...mail, to }));
const reached = ({ mails }: MailServer) => mails.map(({ to }) => to.join());

/** Work with the present mailer that continues until it is told to end. */
async function held(): Promise<{ mailer: Mailer; done: Promise<unknown>; end: () => void }> {
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  let done: Promise<unknown> = Promise.resolve();
  const mailer = await new Promise<Mailer>((resolve) => {
    done = service.use(async (own) => {
      resolve(own);
      await ended;
    });
  });
  return { mailer, done, end };
}

/** Returns the log lines about mails, without the time. */
const told = () =>
  lines.map((line) => {
    const { time: _, ...rest } = JSON.parse(line);
    return rest;
  });

describe('mail that is used', () => {
  it('is nothing without settings, and connects no one (MAIL-1)', async () => {
    present = null;
    let isCalled = false;
    const work = async () => {
      isCalled = true;
    };
    expect([await service.use(work), await service.settings(), isCalled]).toEqual([null, null, false]);
    expect(first.connections).toBe(0);
  });

  it('is the same mailer as long as the settings are the same object, and passes on what comes of it', async () => {
    const one = await service.use(async (mailer) => mailer);
    expect(await service.use(async (mailer) => mailer)).toBe(one);
    await expect(service.use(() => Promise.reject(new Error('its own')))).rejects.toThrow('its own');
    expect(await send()).toMatch(/^250/);
    present = settingsOf(first);
    expect(await service.use(async (mailer) => mailer)).not.toBe(one);
  });

  it('is opened once for many who ask at the same time', async () => {
    const mailers = await Promise.all(Array.from({ length: 8 }, () => service.use(async (mailer) => mailer)));
    expect(new Set(mailers).size).toBe(1);
  });

  it('goes on with the settings that it began with; what comes later has the new ones; then the old server is left (MAIL-9)', async () => {
    const { mailer, done, end } = await held();
    await mailer.send({ ...mail, to: 'a@x.test' });
    present = settingsOf(second);
    await send('b@x.test');
    await mailer.send({ ...mail, to: 'c@x.test' });
    expect([reached(first), reached(second)]).toEqual([['a@x.test', 'c@x.test'], ['b@x.test']]);
    expect(first.open).toBe(1);
    end();
    await done;
    await first.until(() => first.open === 0, 'the old server to be left');
    await expect(mailer.send(mail)).rejects.toMatchObject({ kind: 'unreachable' });
    expect(await send()).toMatch(/^250/);
  });

  it('goes on until the last of several who use it is done', async () => {
    const [one, other] = [await held(), await held()];
    present = settingsOf(second);
    await send();
    one.end();
    await one.done;
    await other.mailer.send({ ...mail, to: 'still@x.test' });
    expect(reached(first)).toEqual(['still@x.test']);
    other.end();
    await other.done;
    await expect(other.mailer.send(mail)).rejects.toMatchObject({ kind: 'unreachable' });
  });

  it('goes on when the settings are removed meanwhile (MAIL-9)', async () => {
    const { mailer, done, end } = await held();
    present = null;
    expect(await send()).toBeNull();
    await mailer.send(mail);
    expect(reached(first)).toEqual(['ada@x.test']);
    end();
    await done;
    await first.until(() => first.open === 0, 'the old server to be left');
  });

  it('is left at once where no one uses it when others take its place', async () => {
    await send();
    expect(first.open).toBe(1);
    present = null;
    await service.use(async () => {});
    await first.until(() => first.open === 0, 'the old server to be left');
  });

  it('is given up when the service stops', async () => {
    first.faults = { hang: () => true };
    const sending = send();
    await first.until(() => first.hanging === 1);
    await service.close();
    await expect(sending).rejects.toMatchObject({ kind: 'unreachable' });
    await first.until(() => first.open === 0, 'the server to be left');
  });
});

describe('mail that is sent later', () => {
  it('goes out behind the caller, and is not told of (MAIL-2)', async () => {
    service.sendLater('welcome', mail);
    expect(first.asked).toEqual([]);
    await first.mailTo('ada@x.test');
    await behind.close();
    expect([told(), faults]).toEqual([[], []]);
  });

  it('is left out without settings, which is told without a fault (MAIL-1)', async () => {
    present = null;
    service.sendLater('welcome', mail);
    await behind.close();
    expect(told()).toEqual([{ level: 30, what: 'welcome', msg: 'mail not sent: mail is not configured' }]);
    expect(faults).toEqual([]);
  });

  it('is logged and counted when it fails, without what is secret in it, and nothing else comes of it (MAIL-2)', async () => {
    first.faults = { refuseData: () => 554 };
    service.sendLater('recovery of a password', mail);
    await behind.close();
    expect(told()).toEqual([
      {
        level: 40,
        what: 'recovery of a password',
        kind: 'refused',
        msg: 'a mail did not go out',
        cause: expect.stringMatching(/554 Not taken/),
      },
    ]);
    expect(faults).toEqual(['mailFailed']);
    expect(lines.join('\n')).not.toContain(token);
  });

  it('goes to the server that is configured when its turn comes', async () => {
    service.sendLater('welcome', mail);
    present = settingsOf(second);
    await second.mailTo('ada@x.test');
    expect(first.connections).toBe(0);
  });
});
