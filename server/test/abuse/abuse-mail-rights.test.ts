import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hour, minute } from '../../src/base/clock.ts';
import { MailServer } from '../support/mail-server.ts';
import { except, RawMailServer } from '../support/raw-mail-server.ts';
import { secondConnection } from '../support/second-connection.ts';
import { watchStatements } from '../support/statement-watch.ts';
import { planOf } from '../support/store-plans.ts';
import { type Client, TestApp } from '../support/test-app.ts';

describe('what no one can make mail do', () => {
  let mails: MailServer;
  let app: TestApp;
  let admin: Client;
  const start = async (environment: Readonly<Record<string, string>> = {}) => {
    app = await TestApp.start(environment);
    admin = await app.setUp();
  };
  beforeEach(async () => {
    mails = await MailServer.start();
  });
  afterEach(async () => {
    await app.close();
    await mails.stop();
  });

  it('200: a member who moves to and fro has five strangers an hour written to, and no more (ADDRESS-5, MAIL-6)', async () => {
    await start({ SMTP_URL: mails.url, RATE_LIMIT: 'on' });
    const member = await app.member(admin, 'grace@example.com');
    const move = async (place: number) => {
      const { status } = await member.patch(`/users/${member.userId}/email`, {
        email: `stranger-${place}@example.org`,
      });
      expect(status).toBe(200);
    };
    for (let place = 0; place < 6; place += 1) await move(place);
    app.clock.advance(minute);
    await move(6);
    app.clock.advance(hour);
    await move(7);
    await mails.mailTo('stranger-7@example.org');
    const strangers = [0, 1, 2, 3, 4, 7].map((place) => `stranger-${place}@example.org`);
    const notices = Array.from({ length: 5 }, () => 'grace@example.com');
    await mails.until(() => mails.mails.length === 11, 'every mail');
    expect(mails.mails.flatMap(({ to }) => to).toSorted()).toEqual([...notices, ...strangers]);
  });

  it('400: a stored password goes out in clear for no one who does not know it (MAIL-8, MAIL-12)', async () => {
    await start();
    const listener = await RawMailServer.start(
      except('EHLO', (socket) => socket.write('250-raw.test\r\n250 AUTH PLAIN\r\n')),
    );
    const path = '/settings/smtp';
    const at = { host: '127.0.0.1', port: listener.port, username: 'mara', from: 'a@example.com' };
    await admin.put(path, { ...at, security: 'tls', password: 'Marble-Kettle-8' });
    for (const security of ['none', 'opportunistic', undefined]) {
      const { status, body } = await admin.put(path, { ...at, security });
      expect([status, body.error?.details[0].field]).toEqual([400, 'body.password']);
    }
    for (const security of ['starttls', 'tls']) expect((await admin.put(path, { ...at, security })).status).toBe(200);
    expect((await admin.put(path, { ...at, security: 'none', password: 'Marble-Kettle-8' })).status).toBe(200);
    expect((await admin.put(path, { ...at, security: 'none' })).body).toMatchObject({
      security: 'none',
      hasPassword: true,
    });
    expect(listener.lines).toEqual([]);
    await listener.stop();
  });

  it('finds people by their addresses, and what they have, without a look at everyone (LINK-3, PASSWORD-7)', async () => {
    await start({ SMTP_URL: mails.url });
    const member = await app.member(admin, 'grace@example.com');
    const statements = new Set<string>();
    // The relays read the few webhooks periodically; a deleted user may have created one of the few webhooks and
    // service clients.
    const isOurs = (text: string) =>
      /users|one_time_links/.test(text) && !/from "(?:webhooks|service_clients)"/.test(text);
    const stop = watchStatements((text) => void (isOurs(text) && statements.add(text)));
    for (const email of ['grace@example.com', 'nobody@example.com']) {
      await app.anonymous.post('/userAccount/password/forgot', { email });
    }
    await mails.mailTo('grace@example.com');
    await member.patch(`/users/${member.userId}/email`, { email: 'hopper@example.com' });
    expect((await admin.delete(`/users/${member.userId}`)).status).toBe(200);
    expect((await admin.post('/users/bulk/invite', { emails: ['grace@example.com'] })).status).toBe(200);
    expect((await admin.post(`/users/${member.userId}/resend-invite`)).status).toBe(200);
    stop();
    const store = secondConnection(app);
    const everyone = [...statements].filter((text) => {
      const plan = planOf(store, text);
      return plan.scans.length > 0 || /\(org_id ?=[^a-z]*( AND [^a-z]*is_deleted ?=[^a-z]*)?\)$/m.test(plan.text);
    });
    store.close();
    expect([everyone, statements.size > 10]).toEqual([[], true]);
  });
});
