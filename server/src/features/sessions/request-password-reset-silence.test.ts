import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MailServer, tokenIn } from '../../../test/support/mail-server.ts';
import { forget, mailedToken, resetWith, startWithMail } from '../../../test/support/recovery.ts';
import { neutral } from '../../../test/support/sign-in.ts';
import { watchStatements } from '../../../test/support/statement-watch.ts';
import {
  type Client,
  type Json,
  organization,
  type TestApp,
  type TestResponse,
} from '../../../test/support/test-app.ts';
import { minute } from '../../base/clock.ts';

const path = '/userAccount/password/forgot';
const email = 'grace@example.com';
const neutralText =
  'If this e-mail address has an account, we send it a mail with a link to set a new password. If none arrives within ten minutes, ask again';

describe('POST /userAccount/password/forgot tells no one who has an address', () => {
  let mails: MailServer;
  let app: TestApp;
  let admin: Client;
  let member: Client;

  beforeEach(async () => {
    mails = await MailServer.start();
    await start();
  });
  afterEach(async () => {
    await app.close();
    await mails.stop();
  });

  async function start(environment: Readonly<Record<string, string>> = {}): Promise<void> {
    app = await startWithMail(mails, environment);
    admin = await app.setUp();
    member = await app.member(admin, email);
  }
  async function restart(environment: Readonly<Record<string, string>>): Promise<void> {
    await app.close();
    await start(environment);
  }
  const links = () => app.services.db.read.selectFrom('one_time_links').selectAll().execute();

  /** Waits until all that was asked for before is done: work is begun in its order. */
  async function settled(): Promise<void> {
    await app.services.afterResponse.close();
  }

  /** All of an answer but what differs from request to request. */
  function shown({ status, headers, text }: TestResponse): Json {
    const told = Object.fromEntries(headers);
    return { status, text, headers: { ...told, date: '', 'x-request-id': '' } };
  }

  it('200: unknown, deleted, with mail that fails, without the password method: the same answer (PASSWORD-7)', async () => {
    const usual = shown(await forget(app, email));
    await mails.mailTo(email);
    const same = async (address: string) => expect(shown(await forget(app, address))).toEqual(usual);
    mails.clear();
    await same('nobody@example.com');
    await same('nobody@elsewhere.test');
    await admin.delete(`/users/${member.userId}`);
    await same(email);
    await settled();
    expect(mails.asked).toEqual([]);

    mails.faults = { refuse: () => 550 };
    await same('ada@example.com');
    await settled();
    expect(mails.asked).toEqual(['ada@example.com']);
    await mails.stop();
    await same('ada@example.com');
    await settled();
    // It is tried again, as long as the server may come back.
    await vi.waitUntil(() => app.logLines.filter((line) => line.includes('a mail did not go out')).length === 2);
    await mails.listen();
    mails.faults = {};

    await app.services.db.transaction((tx) =>
      tx
        .updateTable('auth_configs')
        .set({ steps: JSON.stringify([{ order: 1, allowedMethods: [] }]) })
        .execute(),
    );
    mails.clear();
    const before = await links();
    await same('ada@example.com');
    await settled();
    expect([mails.asked, await links()]).toEqual([[], before]);
  });

  it('200: without mail configured nothing is mailed and no link made (MAIL-1, PASSWORD-7)', async () => {
    const usual = shown(await forget(app, email));
    await restart({ SMTP_URL: '', MAIL_FROM: '' });
    expect(shown(await forget(app, email))).toEqual(usual);
    await settled();
    expect(await links()).toEqual([]);
  });

  it('200: an individual account works like any (PASSWORD-7)', async () => {
    const usual = shown(await forget(app, email));
    await app.close();
    app = await startWithMail(mails);
    // Before there are users.
    expect(shown(await forget(app, 'ada@example.com'))).toEqual(usual);
    await app.anonymous.post('/org', { ...organization, accountType: 'individual', registeredName: undefined });
    await mailedToken({ app, mails }, 'ada@example.com');
    expect(mails.mails).toMatchObject([{ subject: 'Reset your password for example.com' }]);
  });

  it('200: a deleted organization mails nothing (ORG-26, PASSWORD-7)', async () => {
    const usual = shown(await forget(app, email));
    await mails.mailTo(email);
    await admin.delete('/org');
    mails.clear();
    expect(shown(await forget(app, email))).toEqual(usual);
    await settled();
    expect(mails.asked).toEqual([]);
  });

  it('200: the store is not asked for anyone, and nothing written, before the answer is out (PASSWORD-7)', async () => {
    const happened: string[] = [];
    app.app.server.prependListener('request', (_, response) => {
      const end = response.end.bind(response);
      response.end = ((...args: []) => {
        happened.push('answer');
        return end(...args);
      }) as typeof response.end;
    });
    const stop = watchStatements((sql) => {
      // The relays read the webhooks periodically.
      if (/users|one_time_links|audit_log|^begin/.test(sql) && !/webhooks/.test(sql)) happened.push('store');
    });
    try {
      for (const address of [email, 'nobody@example.com']) {
        happened.length = 0;
        await forget(app, address);
        await settled();
        expect(happened.slice(0, 2)).toEqual(['answer', 'store']);
        expect(happened.filter((what) => what === 'answer')).toHaveLength(1);
      }
    } finally {
      stop();
    }
  });

  it('200: a mail server that never answers keeps no one waiting (MAIL-7, PASSWORD-7)', async () => {
    mails.faults = { hang: () => true };
    await forget(app, email);
    await mails.until(() => mails.hanging === 1, 'a mail that hangs');
    expect(await forget(app, 'ada@example.com')).toMatchObject({ status: 200, body: { message: neutralText } });
    expect((await member.get('/org')).status).toBe(200);
    await mails.stop();
  });

  it('a failure of the mail or of the store is logged once, without the link (MAIL-2, PASSWORD-6, PASSWORD-7)', async () => {
    mails.faults = { refuseData: () => 554 };
    await forget(app, email);
    await settled();
    const warnings = () => app.logLines.map((line) => JSON.parse(line)).filter(({ level }) => level >= 40);
    expect(warnings()).toMatchObject([
      { what: 'recovery of a password', kind: 'refused', msg: 'a mail did not go out' },
    ]);
    expect(app.logLines.join('\n')).not.toMatch(/lkl_/);
    app.logLines.length = 0;
    const failing = vi.spyOn(app.services.db, 'transaction').mockRejectedValueOnce(new Error('the store is gone'));
    expect(await forget(app, email)).toMatchObject({ status: 200, body: { message: neutralText } });
    await settled();
    failing.mockRestore();
    expect(warnings()).toMatchObject([{ what: 'recovery of a password', msg: 'work after a response failed' }]);
  });

  describe('is limited', () => {
    beforeEach(() => restart({ RATE_LIMIT: 'on', TRUST_PROXY: '127.0.0.1' }));
    const from = (address: string, user = email) =>
      app.anonymous.post(path, { email: user }, { headers: { 'x-forwarded-for': address } });

    it('200: a person gets three mails in 20 minutes, and beyond that none, in silence (PASSWORD-7)', async () => {
      const responses: TestResponse[] = [];
      for (let place = 0; place < 5; place += 1) responses.push(await from(`198.51.100.${place}`));
      await settled();
      expect(new Set(responses.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
      expect(await links()).toHaveLength(3);
      // Other networks are not blocked by that.
      await from('198.51.100.1', 'ada@example.com');
      await mails.mailTo('ada@example.com');
      app.clock.advance(20 * minute - 1);
      await from('198.51.100.1');
      await settled();
      const tokens = mails.mailsTo(email).map(tokenIn);
      expect(tokens).toHaveLength(3);
      // What is left out ends nothing: of those that went out, the last one still works.
      const tries: number[] = [];
      for (const token of tokens) tries.push((await resetWith(app, token)).status);
      expect(tries.toSorted((one, other) => one - other)).toEqual([200, 410, 410]);
      app.clock.advance(1);
      expect((await resetWith(app, await mailedToken({ app, mails }, email))).status).toBe(200);
    });

    it('429: 60 times a minute from one network, known and unknown addresses alike; others go on (ERR-24, PASSWORD-7)', async () => {
      for (let place = 0; place < 60; place += 1) {
        const user = place % 2 === 0 ? email : `nobody-${place}@example.com`;
        expect((await from('198.51.100.7', user)).status).toBe(200);
      }
      const [known, unknown] = [await from('198.51.100.7'), await from('198.51.100.7', 'nobody@example.com')];
      expect(known).toMatchObject({ status: 429, body: { error: { code: 'RATE_LIMITED' } } });
      expect(known.headers.get('retry-after')).toBe('60');
      expect(neutral(known)).toEqual(neutral(unknown));
      expect((await from('203.0.113.9')).status).toBe(200);
      app.clock.advance(minute);
      expect((await from('198.51.100.7')).status).toBe(200);
    });
  });
});
