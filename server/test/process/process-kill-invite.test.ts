import type { Socket } from 'node:net';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { MailServer } from '../support/mail-server.ts';
import { except, RawMailServer } from '../support/raw-mail-server.ts';
import { secondConnection } from '../support/second-connection.ts';
import { ensureServerIsBuilt, readStore, ServerProcess, withDirectory } from '../support/server-process.ts';

const timeoutMs = 120_000;
const lostMs = 90_000;
const emails = Array.from({ length: 60 }, (_, place) => `guest-${place}@example.com`);

beforeAll(ensureServerIsBuilt);

/** Accounts, events and links as they must be however the invitation ended: each once. */
function expectOnce(dataDir: string): void {
  const users: { id: string; email: string }[] = readStore(
    dataDir,
    'SELECT id, email FROM users WHERE has_logged_in = 0 ORDER BY id',
  );
  expect(users.map(({ email }) => email).toSorted()).toEqual(emails.toSorted());
  const events = readStore(dataDir, 'SELECT sequence, event_type, payload FROM outbox ORDER BY sequence');
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, place) => place + 1));
  const added = events.filter(({ event_type }) => event_type === 'userAdded').map(({ payload }) => JSON.parse(payload));
  const invited = added.filter(({ email }) => emails.includes(email)).map(({ userId }) => userId);
  expect(new Set(invited)).toEqual(new Set(users.map(({ id }) => id)));
  expect(invited).toHaveLength(users.length);
  const links = readStore(
    dataDir,
    "SELECT user_id FROM one_time_links WHERE purpose = 'invitation' AND is_current = 1 ORDER BY user_id",
  );
  expect(links).toEqual(users.map(({ id }) => ({ user_id: id })));
}

/** Lets so much time have passed since the invitation: the clock of a process of its own cannot be moved. */
function letPass(dataDir: string, ms: number): void {
  const connection = secondConnection({ dataDir });
  connection.prepare('UPDATE one_time_links SET created_at = created_at - ?, expires_at = expires_at - ?').run(ms, ms);
  connection.close();
}

describe('kill -9 in the middle of an invitation', () => {
  it(
    'leaves every account and event once; after 90 s anyone who has no mail is invited by the same call (INVITE-14, INVITE-15, STORE-2)',
    () =>
      withDirectory(async (dataDir) => {
        const held: Socket[] = [];
        const raw = await RawMailServer.start(
          except('.', (socket) => {
            // A few mails get through, and then the server stands still.
            if (held.push(socket) <= 8) socket.write('250 OK\r\n');
          }),
        );
        const start = (port: number) =>
          ServerProcess.start({
            DATA_DIR: dataDir,
            RATE_LIMIT: 'off',
            SMTP_URL: `smtp://127.0.0.1:${port}`,
            MAIL_CONNECTIONS: '4',
          });
        let server = await start(raw.port);
        const token = await server.setUp();
        const call = { token, body: { emails } };
        const broken = server.call('POST', '/users/bulk/invite', call).then(
          ({ status }) => status,
          (error: Error) => error.message,
        );
        await vi.waitUntil(() => held.length === 12, { timeout: 20_000 });
        await server.end('SIGKILL');
        expect(await broken).toMatch(/fetch failed|terminated|socket/);
        await raw.stop();
        expectOnce(dataDir);

        const mail = await MailServer.start();
        server = await start(mail.port);
        // It is not known yet whether the mails were sent.
        expect((await server.call('POST', '/users/bulk/invite', call)).status).toBe(409);
        const pending = await server.call('GET', '/users/invitations?status=pending', { token });
        expect(pending.body.pagination.totalCount).toBe(emails.length);
        await server.end('SIGKILL');
        letPass(dataDir, lostMs);

        server = await start(mail.port);
        const failed = await server.call('GET', '/users/invitations?status=failed', { token });
        expect(failed.body.pagination.totalCount).toBe(emails.length);
        expect((await server.call('POST', '/users/bulk/invite', call)).status).toBe(200);
        expect(mail.mails.flatMap(({ to }) => to).toSorted()).toEqual(emails.toSorted());
        expect((await server.call('POST', '/users/bulk/invite', call)).status).toBe(409);
        expect((await server.end('SIGTERM')).code).toBe(0);
        expectOnce(dataDir);
        await mail.stop();
      }),
    timeoutMs,
  );
});
