import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Browser, outcomeOf, signInOfTicket } from '../support/browser.ts';
import { allowOidc, callbackUrl, OidcServer, RunningClock, showTicket, startUrlOf } from '../support/oidc-server.ts';
import { storedRows } from '../support/second-connection.ts';
import { beginSignIn, claimsOf, neutral } from '../support/sign-in.ts';
import { type Json, password, TestApp } from '../support/test-app.ts';

const user = (email: string) => ({ sub: email, email, email_verified: true });
const victim = user('victim@example.com');
const mallory = user('mallory@example.com');

describe('the ticket of single sign-on and the sign-in that it was fetched for', () => {
  let provider: OidcServer;
  let app: TestApp;
  let wrong: unknown;

  beforeAll(async () => {
    provider = await OidcServer.start();
    app = await TestApp.start(provider.environment, new RunningClock());
    await allowOidc(await app.setUp());
    wrong = neutral(await app.signInTokens('ada@example.com', 'Wrong-Horse-7'));
  });
  afterAll(async () => {
    await app.close();
    await provider.stop();
  });

  const fetchTicket = async (who: typeof victim, visit: { browser?: Browser; token?: string } = {}) =>
    outcomeOf(await provider.walk(app, who, visit));
  const signedIn = ({ status, body }: Json) => [status, status === 200 ? claimsOf(body.accessToken).email : null];
  const sessionsBegun = () => storedRows(app)['sessions']?.length ?? 0;

  it('401: in any other sign-in, also of the same person; it stays valid for its own (AUTH-56)', async () => {
    const ticket = await fetchTicket(victim);
    const others = [await beginSignIn(app), await beginSignIn(app, victim.email), await beginSignIn(app)];
    for (const token of others) expect(neutral(await showTicket(app, ticket, token))).toEqual(wrong);
    expect(signedIn(await showTicket(app, ticket))).toEqual([200, victim.email]);
  });

  it('401: in a sign-in that has a ticket of its own: the two cannot be exchanged (AUTH-56)', async () => {
    const [one, two] = [await fetchTicket(victim), await fetchTicket(victim)];
    const [forOne, forTwo] = [one, two].map(({ oidc = '' }) => signInOfTicket.get(oidc));
    expect(forOne).not.toBe(forTwo);
    expect(neutral(await showTicket(app, one, forTwo))).toEqual(wrong);
    expect(neutral(await showTicket(app, two, forOne))).toEqual(wrong);
    expect((await showTicket(app, one, forOne)).status).toBe(200);
    expect((await showTicket(app, two, forTwo)).status).toBe(200);
  });

  it('200: in the sign-in whose address was followed, begun with the e-mail or without (AUTH-3, AUTH-56)', async () => {
    for (const email of [undefined, victim.email]) {
      const token = await beginSignIn(app, email);
      expect(signedIn(await showTicket(app, await fetchTicket(victim, { token }), token))).toEqual([200, victim.email]);
    }
  });

  it('401: for all others when many sign-ins show it at once; its own gets in (AUTH-9, AUTH-56)', async () => {
    const ticket = await fetchTicket(victim);
    const others = await Promise.all(Array.from({ length: 15 }, () => beginSignIn(app)));
    const before = sessionsBegun();
    const responses = await Promise.all([...others, undefined].map((token) => showTicket(app, ticket, token)));
    expect(responses.map(({ status }) => status)).toEqual([...others.map(() => 401), 200]);
    expect(sessionsBegun()).toBe(before + 1);
  });

  describe('slipped by someone into the browser of someone else (login CSRF)', () => {
    it('401: the ticket of a stranger, and no one is signed in; the sign-in goes on (AUTH-9, AUTH-56)', async () => {
      const slipped = await fetchTicket(mallory);
      const token = await beginSignIn(app);
      const before = sessionsBegun();
      expect(neutral(await showTicket(app, slipped, token))).toEqual(wrong);
      expect(neutral(await showTicket(app, { ...slipped, email: victim.email }, token))).toEqual(wrong);
      expect(sessionsBegun()).toBe(before);
      expect(signedIn(await showTicket(app, await fetchTicket(victim, { token }), token))).toEqual([200, victim.email]);
    });

    it('401: what a cookie of the stranger leads to is for the sign-in of the stranger (AUTH-56)', async () => {
      const [theirs, own] = [new Browser(app), new Browser(app)];
      const back = await provider.signIn(theirs, mallory);
      own.signInToken = await beginSignIn(app);
      await own.open(startUrlOf(own.signInToken));
      // Their address alone leads nowhere.
      expect(outcomeOf((await own.open(back)).location)).toEqual({ error: 'expired' });
      const headers = { cookie: theirs.cookiesFor(callbackUrl) };
      const planted = await fetch(back.replace(new URL(back).origin, app.url), { redirect: 'manual', headers });
      const ticket = outcomeOf(planted.headers.get('location'));
      expect(ticket['email']).toBe(mallory.email);
      expect(neutral(await showTicket(app, ticket, own.signInToken))).toEqual(wrong);
      expect(signedIn(await showTicket(app, ticket, theirs.signInToken))).toEqual([200, mallory.email]);
    });

    it('401: a ticket that was fetched from the address of the stranger is no valid for any other sign-in (AUTH-56)', async () => {
      const [theirs, own] = [await beginSignIn(app), await beginSignIn(app)];
      const ticket = await fetchTicket(victim, { token: theirs });
      expect(neutral(await showTicket(app, ticket, own))).toEqual(wrong);
    });

    it('401: an id alone is no sign-in: nothing but the header of the sign-in itself counts (AUTH-3, AUTH-56)', async () => {
      const ticket = await fetchTicket(victim);
      const token = signInOfTicket.get(ticket['oidc'] ?? '') ?? '';
      const [header, , signature] = (await beginSignIn(app)).split('.');
      const made = [claimsOf(token).jti, `${header}.${token.split('.')[1]}.${signature}`];
      for (const one of made) expect((await showTicket(app, ticket, one)).status).toBe(401);
      expect((await showTicket(app, ticket, token)).status).toBe(200);
    });
  });

  it('200: by the password, in a sign-in where a ticket of another one was refused (AUTH-9, AUTH-56)', async () => {
    const ticket = await fetchTicket(user('ada@example.com'));
    const token = await beginSignIn(app);
    expect(neutral(await showTicket(app, ticket, token))).toEqual(wrong);
    const body = { method: 'password', credentials: { password }, email: 'ada@example.com' };
    const response = await app.anonymous.post('/userAccount/authenticate', body, {
      headers: { 'x-session-token': token },
    });
    expect(response.status).toBe(200);
  });
});
