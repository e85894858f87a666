import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MailServer } from '../../test/support/mail-server.ts';
import { TestClock } from '../../test/support/test-clock.ts';
import { deliverAll } from './deliver-all.ts';
import type { Mail } from './mail.ts';
import { MailError } from './mail-error.ts';
import { type Mailer, openMailer } from './mailer.ts';

const inEarnestMs = 60_000;
const from = { name: null, address: 'no-reply@latchkey.test' };

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

function open(mailMsMax?: number): Mailer {
  return openMailer(
    { host: '127.0.0.1', port: server.port, security: 'opportunistic', login: null, from },
    { clock: new TestClock(), ...(mailMsMax === undefined ? {} : { mailMsMax }) },
  );
}

const addressOf = (index: number) => `p${index}@x.test`;

function mails(count: number): Mail[] {
  return Array.from({ length: count }, (_, index) => ({ to: addressOf(index), subject: 'Hi', text: 'Hi', html: 'Hi' }));
}

/** A mailer that counts, and passes on. */
function counting(inner: Pick<Mailer, 'send'>) {
  const count = { begun: [] as string[], atOnce: 0, atOnceMost: 0 };
  const counted: Mailer = {
    connections: 2,
    send: async (mail, signal) => {
      count.begun.push(mail.to);
      count.atOnce += 1;
      count.atOnceMost = Math.max(count.atOnceMost, count.atOnce);
      try {
        return await inner.send(mail, signal);
      } finally {
        count.atOnce -= 1;
      }
    },
    close: () => mailer.close(),
  };
  return { count, counted };
}

const kinds = (outcomes: readonly (MailError | null)[]) => outcomes.map((outcome) => outcome?.kind ?? 'sent');
const oneOf = (count: number, index: number, kind: string) =>
  Array.from({ length: count }, (_, at) => (at === index ? kind : 'sent'));

describe('a list of a hundred mails', () => {
  it('goes out, two at a time, begun in their order (FIT-21, MAIL-7)', async () => {
    const { count, counted } = counting(mailer);
    expect(await deliverAll(counted, mails(100), { msMax: inEarnestMs })).toEqual(Array(100).fill(null));
    expect(server.mails.map(({ to }) => to.join()).toSorted()).toEqual(
      mails(100)
        .map(({ to }) => to)
        .toSorted(),
    );
    expect(count.begun).toEqual(mails(100).map(({ to }) => to));
    expect(count.atOnceMost).toBe(2);
    expect(server.openMost).toBeLessThanOrEqual(2);
  });

  it.each([452, 550])('reaches ninety-nine when one recipient is answered %i (MAIL-7)', async (status) => {
    server.faults = { refuse: (address) => (address === addressOf(42) ? status : null) };
    const limits = { msMax: inEarnestMs, pausesMs: [1] };
    expect(kinds(await deliverAll(mailer, mails(100), limits))).toEqual(oneOf(100, 42, 'refused'));
    expect(server.mails).toHaveLength(99);
  });

  it('reaches ninety-nine when one recipient hangs, who is late after the time of a mail (INVITE-17, MAIL-7)', async () => {
    await mailer.close();
    mailer = open(4_000);
    server.faults = { hang: (address) => address === addressOf(42) };
    expect(kinds(await deliverAll(mailer, mails(100), { msMax: inEarnestMs }))).toEqual(oneOf(100, 42, 'late'));
    expect(server.mails).toHaveLength(99);
  });

  it('reaches ninety-nine when the server hangs up at one of them (MAIL-7)', async () => {
    server.faults = { dropAfterData: (address) => address === addressOf(42) };
    expect(kinds(await deliverAll(mailer, mails(100), { msMax: inEarnestMs }))).toEqual(oneOf(100, 42, 'unreachable'));
    expect(server.mails).toHaveLength(99);
  });

  it('reaches ninety-nine when one address is none (MAIL-3)', async () => {
    const list = mails(100).map((mail, index) => (index === 42 ? { ...mail, to: 'p42,evil@evil.test' } : mail));
    expect(kinds(await deliverAll(mailer, list, { msMax: inEarnestMs }))).toEqual(oneOf(100, 42, 'address'));
    expect(server.asked).toHaveLength(99);
  });

  it('is given up when its time is over: what has gone out has, what hangs and what waits is late (INVITE-17)', async () => {
    await mailer.close();
    mailer = open(inEarnestMs);
    server.faults = { hang: (address) => address !== addressOf(0) };
    const outcomes = await deliverAll(mailer, mails(100), { msMax: 3_000 });
    expect(kinds(outcomes)).toEqual(['sent', ...Array(99).fill('late')]);
    expect(server.hanging).toBe(2);
    expect(server.asked).toEqual(mails(3).map(({ to }) => to));
    await server.until(() => server.open <= 1, 'the connections that hang to be closed');
  });

  it('leaves room for a single mail while all of it hangs (MAIL-7)', async () => {
    await mailer.close();
    mailer = open(4_000);
    server.faults = { hang: (address) => address !== 'single@x.test' };
    const list = deliverAll(mailer, mails(100), { msMax: inEarnestMs });
    await server.until(() => server.hanging === 3, 'two mails that are late, and one that hangs');
    expect(await mailer.send({ to: 'single@x.test', subject: 'Hi', text: 'Hi', html: 'Hi' })).toMatch(/^250/);
    await mailer.close();
    expect(new Set(kinds(await list))).toEqual(new Set(['late', 'unreachable']));
    expect(server.asked).toHaveLength(4);
  });
});

describe('a server that is gone', () => {
  it('is left alone after four mails in a row; the rest gets the same error (MAIL-7)', async () => {
    await server.stop();
    const { count, counted } = counting(mailer);
    const outcomes = await deliverAll(counted, mails(100), { msMax: inEarnestMs });
    expect(new Set(kinds(outcomes))).toEqual(new Set(['unreachable']));
    expect(new Set(outcomes.slice(count.begun.length)).size).toBe(1);
    // Four, and those that were under way.
    expect(count.begun.length).toBeLessThanOrEqual(7);
  });

  it('is left alone however it is gone', async () => {
    server.faults = { dropConnections: true };
    const outcomes = await deliverAll(mailer, mails(100), { msMax: inEarnestMs });
    expect(new Set(kinds(outcomes))).toEqual(new Set(['unreachable']));
    expect(server.connections).toBeLessThanOrEqual(14);
  });
});

describe('patience', () => {
  /** A mailer with a given outcome for each mail, one after the other. */
  function told(ends: readonly (MailError | Error | null)[]) {
    let turn: Promise<unknown> = Promise.resolve();
    return counting({
      send: async ({ to }) => {
        turn = turn.then(() => setImmediate());
        await turn;
        const end = ends[Number(/\d+/.exec(to)?.[0])];
        if (end) throw end;
        return '250 OK';
      },
    });
  }
  const gone = new MailError('unreachable', 'gone');
  const refused = new MailError('refused', '550 no');
  const late = new MailError('late', 'too late');

  it.each([
    ['a mail that goes out', null, 15],
    ['a mail that is refused', refused, 15],
    ['a mail that is late', late, 5],
  ])('begins anew with %s, or does not', async (_, between, begun) => {
    const ends = [gone, gone, gone, between, gone, gone, gone, between, gone, gone, gone, between, gone, gone, gone];
    const { count, counted } = told(ends);
    const outcomes = await deliverAll(counted, mails(15), { msMax: inEarnestMs });
    expect(count.begun).toHaveLength(begun);
    expect(outcomes).toEqual(ends.map((end, index) => (index < begun ? end : gone)));
  });

  it('never rejects', async () => {
    const { counted } = told([new TypeError('secret text'), null]);
    const outcomes = await deliverAll(counted, mails(2), { msMax: inEarnestMs });
    expect(outcomes).toEqual([new MailError('unreachable', 'The mailer failed.'), null]);
    expect(await deliverAll(counted, [], { msMax: inEarnestMs })).toEqual([]);
  });
});
