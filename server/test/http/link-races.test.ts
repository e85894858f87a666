import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Gate, holdNext, holdUntil } from '../support/gates.ts';
import { type Forgotten, forgetful } from '../support/interleaving.ts';
import { MailServer, tokenIn } from '../support/mail-server.ts';
import {
  chosen,
  forget,
  gone,
  invalid,
  mailedToken,
  opens,
  resetWith,
  signedOut,
  startWithMail,
} from '../support/recovery.ts';
import { attemptSignIn, beginSignIn, neutral } from '../support/sign-in.ts';
import { type Client, password, type TestApp, type TestResponse } from '../support/test-app.ts';

const another = 'Another-Horse-9';

/** A user with a password, a session and a link. */
interface User {
  readonly email: string;
  readonly session: Client;
  readonly link: string;
}

describe('links and passwords, at the same moment', () => {
  let mails: MailServer;
  let app: TestApp;
  let admin: Client;
  let count = 0;

  beforeAll(async () => {
    mails = await MailServer.start();
    app = await startWithMail(mails);
    admin = await app.setUp();
    for (const secret of [chosen, another]) app.keepSecret(secret);
  });
  afterAll(async () => {
    await app.close();
    await mails.stop();
  });

  async function someUser(): Promise<User> {
    count += 1;
    const email = `somebody-${count}@example.com`;
    const session = await app.member(admin, email);
    return { email, session, link: await mailedToken({ app, mails }, email) };
  }
  const change = (who: Client, newPassword: string, currentPassword = password) =>
    who.post('/userAccount/password/reset', { currentPassword, newPassword });
  const statuses = (responses: readonly TestResponse[]) => responses.map(({ status }) => status).sort((a, b) => a - b);
  const choices = (many: number) => Array.from({ length: many }, (_, place) => `Choice-Number-${place}!`);

  /** Returns those of some passwords that are accepted. */
  async function opening(email: string, passwords: readonly string[]): Promise<readonly string[]> {
    const opened = await Promise.all(passwords.map((given) => opens(app, email, given)));
    return passwords.filter((_, place) => opened[place]);
  }

  /** Uses one link in several requests at once, each held ahead of its transaction until all are there. */
  async function allAtOnce(link: string, passwords: readonly string[]): Promise<readonly TestResponse[]> {
    holdUntil(app.services.db, 'transaction', passwords.length);
    return Promise.all(passwords.map((given) => resetWith(app, link, given)));
  }

  /** Sends something, and does something else before its transaction begins. */
  async function overtaken(send: () => Promise<TestResponse>, act: () => Promise<unknown>): Promise<TestResponse> {
    const gate: Gate = holdNext(app.services.db, 'transaction');
    const sent = send();
    await gate.arrived;
    await act();
    gate.open();
    return sent;
  }

  /** Makes the store forget kinds of statements while something happens. */
  async function forgetting<T>(forgotten: readonly Forgotten[], act: () => Promise<T>): Promise<T> {
    const { db } = app.services;
    const transaction = db.transaction.bind(db);
    db.transaction = (work) => transaction((tx) => work(forgotten.reduce(forgetful, tx)));
    try {
      return await act();
    } finally {
      db.transaction = transaction;
    }
  }

  it('200 for one and 410 for 31: of 32 that use one link at once, one wins and its password holds (LINK-2, N8)', async () => {
    const { email, link } = await someUser();
    const passwords = choices(32);
    const responses = await allAtOnce(link, passwords);
    expect(statuses(responses)).toEqual([200, ...Array.from({ length: 31 }, () => 410)]);
    const winner = passwords[responses.findIndex(({ status }) => status === 200)];
    expect(await opening(email, [...passwords, password])).toEqual([winner]);
    expect(await resetWith(app, link)).toMatchObject(gone);
  });

  it('is seen: a store that forgets that the link was used lets everyone in (LINK-2)', async () => {
    const { link } = await someUser();
    const responses = await forgetting([['updateTable', 'one_time_links']], () => allAtOnce(link, choices(4)));
    expect(statuses(responses)).toEqual([200, 200, 200, 200]);
  });

  it('200 for one, 410 for the rest: an invitation link at once (INVITE-12, LINK-2)', async () => {
    const { body: invitee } = await admin.post('/users', { fullName: 'Guest', email: 'guest@example.com' });
    const { body } = await admin.post(`/users/${invitee._id}/invite-link`);
    const responses = await allAtOnce(body.link.split('#token=')[1], choices(8));
    expect(statuses(responses)).toEqual([200, ...Array.from({ length: 7 }, () => 410)]);
    expect(await opening('guest@example.com', choices(8))).toHaveLength(1);
  });

  it('410: a link that ends between the look at it and the use of it (LINK-3, USER-43)', async () => {
    const ends: readonly ((user: User) => Promise<unknown>)[] = [
      ({ session }) => change(session, another),
      ({ session }) => session.patch(`/users/${session.userId}/email`, { email: `moved-${count}@example.com` }),
      ({ email }) => mailedToken({ app, mails }, email),
      ({ link }) => resetWith(app, link, another),
    ];
    for (const end of ends) {
      const user = await someUser();
      expect(
        await overtaken(
          () => resetWith(app, user.link),
          () => end(user),
        ),
      ).toMatchObject(gone);
      expect(await opens(app, user.email, chosen)).toBe(false);
      expect(await opens(app, `moved-${count}@example.com`, chosen)).toBe(false);
    }
  });

  it('401: its owner is deleted between the look at it and the use of it (LINK-3)', async () => {
    const { email, session, link } = await someUser();
    const deletion = () => admin.delete(`/users/${session.userId}`);
    expect(await overtaken(() => resetWith(app, link), deletion)).toMatchObject(invalid);
    await admin.post(`/users/${session.userId}/restore`);
    expect(await opening(email, [chosen, password])).toEqual([]);
  });

  it('200 for the last, 410 for the others: of many links that are asked for at once one works (LINK-3)', async () => {
    const { email } = await someUser();
    mails.clear();
    await Promise.all(Array.from({ length: 8 }, () => forget(app, email)));
    await mails.until(() => mails.mailsTo(email).length === 8, 'eight mails');
    const tokens = mails.mailsTo(email).map(tokenIn);
    const responses: TestResponse[] = [];
    for (const token of tokens) responses.push(await resetWith(app, token));
    expect(statuses(responses)).toEqual([200, ...Array.from({ length: 7 }, () => 410)]);
  });

  it('no mail to an address of before: someone is deleted, or moved, before the link is made (LINK-3, AUTH-49)', async () => {
    const [one, two, three] = [await someUser(), await someUser(), await someUser()];
    const links = () => app.services.db.read.selectFrom('one_time_links').selectAll().execute();
    const before = await links();
    mails.clear();
    const request = async ({ email }: User, act: () => Promise<unknown>) => {
      // The answer is out before; what is held is what happens behind it.
      await overtaken(() => forget(app, email), act);
      await app.services.afterResponse.close();
    };
    await request(one, () => admin.delete(`/users/${one.session.userId}`));
    const moved = { email: 'moved-away@example.com' };
    await request(two, () => admin.patch(`/users/${two.session.userId}/email`, moved));
    const resets = () => mails.mails.filter(({ subject }) => subject.startsWith('Reset'));
    expect(resets()).toEqual([]);
    expect((await links()).length).toBe(before.length);
    // As long as the new address is unverified, the one of before is the one that counts.
    const claimed = { email: 'claimed@example.com' };
    await request(three, () => three.session.patch(`/users/${three.session.userId}/email`, claimed));
    expect(resets().map(({ to }) => to)).toEqual([[three.email]]);
  });

  describe('changes of a password', () => {
    it('200 for one and 401 for 7: of changes by several sessions at once one holds (PASSWORD-10)', async () => {
      const { email } = await someUser();
      const sessions = await Promise.all(Array.from({ length: 8 }, () => app.signIn(email)));
      const passwords = choices(8);
      holdUntil(app.services.db, 'transaction', 8);
      const responses = await Promise.all(sessions.map((session, place) => change(session, passwords[place] ?? '')));
      expect(statuses(responses)).toEqual([200, ...Array.from({ length: 7 }, () => 401)]);
      const winner = responses.findIndex(({ status }) => status === 200);
      expect(await opening(email, [...passwords, password])).toEqual([passwords[winner]]);
      for (const [place, session] of sessions.entries()) {
        expect([place, await session.get('/org')]).toMatchObject([place, signedOut]);
      }
      expect((await app.with(responses[winner]?.body.accessToken).get('/org')).status).toBe(200);
      for (const response of responses.filter(({ status }) => status !== 200))
        expect(response).toMatchObject(signedOut);
    });

    it('200 for one and 401 for 7: of changes by one session at once one holds (PASSWORD-10)', async () => {
      const { email, session } = await someUser();
      const passwords = choices(8);
      holdUntil(app.services.db, 'transaction', 8);
      const responses = await Promise.all(passwords.map((given) => change(session, given)));
      expect(statuses(responses)).toEqual([200, ...Array.from({ length: 7 }, () => 401)]);
      const winner = responses.findIndex(({ status }) => status === 200);
      expect(await opening(email, [...passwords, password])).toEqual([passwords[winner]]);
      expect((await app.with(responses[winner]?.body.accessToken).get('/org')).status).toBe(200);
    });

    it('is seen: a store that keeps the hash and the sessions as they were lets both hold; either alone lets one (PASSWORD-10, SESSION-1)', async () => {
      const [hash, sessions] = [['insertInto', 'password_credentials'] as const, ['updateTable', 'sessions'] as const];
      const changes = async (forgotten: readonly Forgotten[]) => {
        const { session } = await someUser();
        const responses = await forgetting(forgotten, async () => {
          holdUntil(app.services.db, 'transaction', 2);
          return Promise.all(choices(2).map((given) => change(session, given)));
        });
        return statuses(responses);
      };
      expect(await changes([hash, sessions])).toEqual([200, 200]);
      for (const one of [hash, sessions]) expect(await changes([one])).toEqual([200, 401]);
    });

    it('401: a change that a reset overtakes, whose password holds (PASSWORD-9, PASSWORD-10)', async () => {
      const { email, session, link } = await someUser();
      const refused = await overtaken(
        () => change(session, another),
        () => resetWith(app, link),
      );
      expect(refused).toMatchObject(signedOut);
      expect(await opening(email, [chosen, another, password])).toEqual([chosen]);
    });

    it('401: a change by someone who is deleted or signed out meanwhile (AUTH-18, AUTH-24)', async () => {
      const [one, two] = [await someUser(), await someUser()];
      const out = () => one.session.post('/userAccount/logout/manual');
      expect(await overtaken(() => change(one.session, another), out)).toMatchObject(signedOut);
      expect(await opening(one.email, [another, password])).toEqual([password]);
      const deletion = () => admin.delete(`/users/${two.session.userId}`);
      expect(await overtaken(() => change(two.session, another), deletion)).toMatchObject(invalid);
      await admin.post(`/users/${two.session.userId}/restore`);
      expect(await opening(two.email, [another, password])).toEqual([]);
    });
  });

  describe('sessions that begin while a password ends', () => {
    it('401: a sign-in with the password of before begins no session after a reset or a change (PASSWORD-9, PASSWORD-10)', async () => {
      for (const end of [({ link }: User) => resetWith(app, link), ({ session }: User) => change(session, chosen)]) {
        const user = await someUser();
        const { email } = user;
        const token = await beginSignIn(app, email);
        const attempt = () =>
          app.anonymous.post(
            '/userAccount/authenticate',
            { method: 'password', credentials: { password } },
            { headers: { 'x-session-token': token } },
          );
        const refused = await overtaken(attempt, () => end(user));
        expect(neutral(refused)).toEqual(neutral(await attemptSignIn(app, { email, password })));
      }
    });

    it('401: a refresh under way begins no session after a reset (PASSWORD-9)', async () => {
      const { email, link } = await someUser();
      const { refreshToken } = (await app.signInTokens(email)).body;
      const refresh = () => app.with(refreshToken).post('/userAccount/refresh/token');
      expect(await overtaken(refresh, () => resetWith(app, link))).toMatchObject(signedOut);
      expect(await refresh()).toMatchObject(signedOut);
    });
  });
});
