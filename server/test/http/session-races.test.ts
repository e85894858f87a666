import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MailServer } from '../support/mail-server.ts';
import { mailedToken, resetWith, signedOut, startWithMail } from '../support/recovery.ts';
import { type Client, type Json, password, type TestApp, type TestResponse } from '../support/test-app.ts';

const path = '/userAccount/refresh/token';
const rounds = 6;
const chosen = (round: number) => `Brand-New-Horse-${round}!`;

/** Refreshes again and again with whatever is answered, until it is refused; answers every pair that there was. */
async function refreshUntilRefused(app: TestApp, first: Json): Promise<Json[]> {
  const pairs = [first];
  for (;;) {
    const { status, body } = await app.with(pairs.at(-1).refreshToken).post(path);
    if (status === 401) return pairs;
    if (status === 200) pairs.push(body);
  }
}

async function expectAllEnded(app: TestApp, pairs: readonly Json[]): Promise<void> {
  for (const { accessToken, refreshToken } of pairs) {
    expect(await app.with(accessToken).get('/org')).toMatchObject(signedOut);
    expect(await app.with(refreshToken).post(path)).toMatchObject(signedOut);
  }
}

describe('a thief refreshes while the owner gets rid of him', () => {
  let mails: MailServer;
  let app: TestApp;
  let admin: Client;
  beforeAll(async () => {
    mails = await MailServer.start();
    app = await startWithMail(mails);
    admin = await app.setUp();
  });
  afterAll(async () => {
    await app.close();
    await mails.stop();
  });

  /** Several thieves hold copies of sessions while something is done; afterwards nothing that any of them got works. */
  async function rid(email: string, secret: string, act: () => Promise<TestResponse>): Promise<TestResponse> {
    const sessions = await Promise.all([1, 2].map(async () => (await app.signInTokens(email, secret)).body));
    // Two copies of each session.
    const thieves = [...sessions, ...sessions].map((pair) => refreshUntilRefused(app, pair));
    const response = await act();
    await expectAllEnded(app, (await Promise.all(thieves)).flat());
    return response;
  }

  it('by a change of the password: every session ends but the one that it begins (SESSION-1)', async () => {
    const email = 'one@example.com';
    await app.member(admin, email);
    let secret = password;
    for (let round = 0; round < rounds; round += 1) {
      const owner = await app.signInTokens(email, secret);
      const newPassword = chosen(round);
      app.keepSecret(newPassword);
      const { status, body } = await rid(email, secret, () =>
        app.with(owner.body.accessToken).post('/userAccount/password/reset', { currentPassword: secret, newPassword }),
      );
      expect(status).toBe(200);
      expect((await app.with(body.accessToken).get('/org')).status).toBe(200);
      expect((await app.with(body.refreshToken).post(path)).status).toBe(200);
      await expectAllEnded(app, [owner.body]);
      secret = newPassword;
    }
  });

  it('by a mailed link (SESSION-1)', async () => {
    const email = 'two@example.com';
    await app.member(admin, email);
    let secret = password;
    for (let round = 0; round < 2; round += 1) {
      const link = await mailedToken({ app, mails }, email);
      const { status } = await rid(email, secret, () => resetWith(app, link, chosen(round)));
      expect(status).toBe(200);
      secret = chosen(round);
    }
  });

  it('by an administrator (SESSION-8)', async () => {
    const { userId } = await app.member(admin, 'three@example.com');
    for (let round = 0; round < rounds; round += 1) {
      const act = () => admin.delete(`/users/${userId}/sessions`);
      expect(await rid('three@example.com', password, act)).toMatchObject({ status: 200 });
      expect((await admin.get(`/users/${userId}/sessions`)).body.sessions).toEqual([]);
    }
  });

  it('tokens that are made meanwhile end with those that there are (SESSION-2, SESSION-3)', async () => {
    const email = 'four@example.com';
    const owner = await app.member(admin, email);
    const thief = await app.signIn(email);
    const [token] = [await thief.token()];
    const making = [thief, token, thief, token].map(async (client) => {
      const made: string[] = [];
      for (;;) {
        const { status, body } = await client.post('/personal-access-tokens', { name: 'hidden' });
        if (status === 401) return made;
        if (status === 201) made.push(body.token.accessToken);
      }
    });
    const body = { currentPassword: password, newPassword: chosen(0), revokeTokens: true };
    expect((await owner.post('/userAccount/password/reset', body)).status).toBe(200);
    for (const made of (await Promise.all(making)).flat()) {
      expect((await app.with(made).get('/org')).status).toBe(401);
    }
    expect((await token.get('/org')).status).toBe(401);
  });
});
