import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { linkIn, MailServer, tokenIn } from '../support/mail-server.ts';
import { ensureServerIsBuilt, readStore, ServerProcess, withDirectory } from '../support/server-process.ts';
import { TestApp } from '../support/test-app.ts';
import { TestClock } from '../support/test-clock.ts';

vi.setConfig({ testTimeout: 60_000 });

let mail: MailServer;

beforeAll(async () => {
  ensureServerIsBuilt();
  mail = await MailServer.start();
});
afterAll(() => mail.stop());

const chosen = 'A-guest-chose-9-this';

describe('an invitation from the outside', () => {
  it('is mailed, read, its password set, and its guest signed in (INVITE-1, INVITE-11, INVITE-12, MAIL-5)', () =>
    withDirectory(async (dataDir) => {
      const frontend = { FRONTEND_URL: 'https://people.example' };
      const server = await ServerProcess.start({ DATA_DIR: dataDir, SMTP_URL: mail.url, ...frontend });
      const token = await server.setUp();
      const body = { emails: ['Katherine@Example.com', 'dorothy@example.com'] };
      expect(await server.call('POST', '/users/bulk/invite', { token, body })).toMatchObject({
        status: 200,
        body: { message: 'Invite sent successfully' },
      });

      const letter = await mail.mailTo('katherine@example.com');
      const link = new URL(linkIn(letter));
      expect([link.origin, link.pathname, link.search]).toEqual(['https://people.example', '/reset-password', '']);
      // A mail scanner opens the page: nothing in it, and nothing on its way there, uses the link up.
      for (const method of ['GET', 'HEAD']) await fetch(`${server.url}${link.pathname}`, { method });
      const set = { token: tokenIn(letter), body: { password: chosen } };
      const done = await server.call('POST', '/userAccount/password/reset/token', set);
      expect([done.status, (await server.call('POST', '/userAccount/password/reset/token', set)).status]).toEqual([
        200, 410,
      ]);

      const signIn = { method: 'password', credentials: { password: chosen }, email: 'katherine@example.com' };
      const headers = { 'x-session-token': await server.beginSignIn() };
      const signedIn = await server.call('POST', '/userAccount/authenticate', { body: signIn, headers });
      expect(signedIn.status).toBe(200);
      const users = await server.call('GET', '/users', { token: signedIn.body.accessToken });
      expect(users.body).toEqual(
        expect.arrayContaining([expect.objectContaining({ fullName: 'katherine', hasLoggedIn: true })]),
      );
      const list = await server.call('GET', '/users/invitations?search=example.com', { token });
      expect(
        list.body.invitations.map(({ email, status }: { email: string; status: string }) => [email, status]),
      ).toEqual(
        expect.arrayContaining([
          ['katherine@example.com', 'accepted'],
          ['dorothy@example.com', 'pending'],
        ]),
      );
      await server.end('SIGTERM');
    }));
});

describe('kill -9 between the commit and the mail', () => {
  it('leaves accounts that count as on their way for 90 seconds, then as not reached, and are mailed by the same call again (INVITE-15, MAIL-2, EVENT-8)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir, SMTP_URL: mail.url });
      const token = await server.setUp();
      mail.faults = { hang: () => true };
      const emails = ['lost-1@example.com', 'lost-2@example.com'];
      const call = server.call('POST', '/users/bulk/invite', { token, body: { emails } }).catch(() => 'cut off');
      await mail.until(() => mail.hanging === 2);
      await server.end('SIGKILL');
      expect(await call).toBe('cut off');
      mail.faults = {};
      const rows = readStore(dataDir, 'SELECT delivery, created_at FROM one_time_links');
      expect(rows.map(({ delivery }) => delivery)).toEqual(['sending', 'sending']);

      const clock = new TestClock(rows[0].created_at + 89_999);
      const app = await TestApp.start({ DATA_DIR: dataDir, SMTP_URL: mail.url }, clock);
      const admin = await app.signIn('ada@example.com');
      const statuses = async () => {
        const { body } = await admin.get('/users/invitations');
        return body.invitations.map(({ status }: { status: string }) => status);
      };
      const again = () => admin.post('/users/bulk/invite', { emails });
      expect([await statuses(), (await again()).status]).toEqual([['pending', 'pending'], 409]);
      clock.advance(1);
      expect([await statuses(), (await again()).status]).toEqual([['failed', 'failed'], 200]);
      expect(await statuses()).toEqual(['pending', 'pending']);
      for (const email of emails) expect(mail.mailsTo(email)).toHaveLength(1);
      const told = (await app.events()).filter(({ payload }) => emails.includes(payload.email));
      expect(told.map(({ event_type }) => event_type)).toEqual(['userAdded', 'userAdded']);
      await app.stop();
    }));
});
