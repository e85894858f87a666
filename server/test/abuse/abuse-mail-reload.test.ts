import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { MailServer } from '../support/mail-server.ts';
import { except, RawMailServer } from '../support/raw-mail-server.ts';
import { type Client, TestApp, type TestResponse } from '../support/test-app.ts';

const path = '/settings/smtp';
const emails = Array.from({ length: 40 }, (_, place) => `guest-${place}@example.com`);

let app: TestApp;
let admin: Client;
let old: RawMailServer;
let next: MailServer;
let held: Socket[];
let isHolding: boolean;

beforeAll(async () => {
  app = await TestApp.start({ MAIL_CONNECTIONS: '4' });
  admin = await app.setUp();
});
afterAll(() => app.close());
beforeEach(async () => {
  [held, isHolding] = [[], true];
  // Accepts mails, and responds to them when it is told to.
  old = await RawMailServer.start(
    except('.', (socket) => {
      if (isHolding) held.push(socket);
      else socket.write('250 OK\r\n');
    }),
  );
  next = await MailServer.start();
});
afterEach(async () => {
  await Promise.all([old.stop(), next.stop()]);
});

const set = async (port: number) => {
  const input = { host: '127.0.0.1', port, security: 'none', from: 'Example <hello@example.com>' };
  expect((await admin.put(path, input)).status).toBe(200);
};

/** Begins an invitation that stands still as soon as the old server has its first four mails. */
async function begin(
  prefix: string,
): Promise<{ wanted: string[]; isDone: () => boolean; answer: Promise<TestResponse> }> {
  await set(old.port);
  const wanted = emails.map((email) => `${prefix}-${email}`);
  let done = false;
  const response = admin.post('/users/bulk/invite', { emails: wanted }).finally(() => {
    done = true;
  });
  await vi.waitUntil(() => held.length === 4, { timeout: 10_000 });
  return { wanted, isDone: () => done, answer: response };
}

function goOn(): void {
  isHolding = false;
  for (const socket of held) socket.write('250 OK\r\n');
}

const asked = () => old.lines.flatMap((line) => /^RCPT TO:<(.+?)>/.exec(line)?.[1] ?? []);

describe('M2: other mail settings while an invitation runs (MAIL-9)', () => {
  it('by PUT: what runs goes on with the old server, what comes later has the new one, and the old one is left', async () => {
    const { wanted, isDone, answer: response } = await begin('put');
    await set(next.port);
    expect((await admin.post(`${path}/test`)).status).toBe(200);
    expect((await admin.post('/users/bulk/invite', { emails: ['later@example.com'] })).status).toBe(200);
    await app.anonymous.post('/userAccount/password/forgot', { email: 'ada@example.com' });
    await next.until(() => next.mails.length === 3, 'a mail to recover a password');
    expect([isDone(), old.sockets.size, asked().length]).toEqual([false, 4, 4]);
    goOn();
    expect((await response).status).toBe(200);
    expect(asked().toSorted()).toEqual(wanted.toSorted());
    await vi.waitUntil(() => old.sockets.size === 0);
    expect(next.mails.map(({ to }) => to.join())).toEqual(['ada@example.com', 'later@example.com', 'ada@example.com']);
  });

  it('by DELETE: what runs goes on, what comes later is refused, and the old server is left', async () => {
    const { wanted, isDone, answer: response } = await begin('delete');
    expect((await admin.delete(path)).status).toBe(200);
    for (const call of [admin.post('/users/bulk/invite', { emails: ['x@example.com'] }), admin.post(`${path}/test`)]) {
      const { status, body } = await call;
      expect([status, body.message]).toEqual([400, expect.stringContaining('SMTP_URL')]);
    }
    expect([isDone(), asked().length]).toEqual([false, 4]);
    goOn();
    expect((await response).status).toBe(200);
    expect(asked().toSorted()).toEqual(wanted.toSorted());
    // No mail is sent any more, so that nothing replaces the mailer: its connections end when they are idle.
    await vi.waitUntil(() => old.sockets.size === 0, { timeout: 10_000 });
  });

  it('by PUT, ten times: each invitation has the server that it began with, wholly', async () => {
    const servers = await Promise.all(Array.from({ length: 10 }, () => MailServer.start()));
    const running: Promise<TestResponse>[] = [];
    for (const [place, server] of servers.entries()) {
      server.faults = { delayMs: 5 };
      await set(server.port);
      running.push(admin.post('/users/bulk/invite', { emails: emails.map((email) => `r${place}-${email}`) }));
      await server.until(() => server.mails.length > 0, 'the first mail');
    }
    expect((await Promise.all(running)).map(({ status }) => status)).toEqual(servers.map(() => 200));
    for (const [place, server] of servers.entries()) {
      const got = server.mails.flatMap(({ to }) => to);
      expect(got.toSorted()).toEqual(emails.map((email) => `r${place}-${email}`).toSorted());
    }
    await Promise.all(servers.slice(0, -1).map((server) => server.until(() => server.open === 0, 'it to be left')));
    await Promise.all(servers.map((server) => server.stop()));
  });
});
