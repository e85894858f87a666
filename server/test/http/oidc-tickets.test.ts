import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { outcomeOf, signInOfTicket } from '../support/browser.ts';
import { holdNext, holdUntil } from '../support/gates.ts';
import { allowOidc, OidcServer, RunningClock, showTicket, startUrlOf } from '../support/oidc-server.ts';
import { secondConnection, storedRows } from '../support/second-connection.ts';
import { claimsOf, neutral } from '../support/sign-in.ts';
import { type Client, password, TestApp } from '../support/test-app.ts';

const authProvidersOf = (token: string) => ({ oidc: { startUrl: startUrlOf(token) } });

describe('the ticket of single sign-on', () => {
  const clock = new RunningClock();
  let provider: OidcServer;
  let app: TestApp;
  let admin: Client;
  let wrong: unknown;

  beforeAll(async () => {
    provider = await OidcServer.start();
    app = await TestApp.start(provider.environment, clock);
    admin = await app.setUp();
    await allowOidc(admin);
    wrong = neutral(await app.signInTokens('ada@example.com', 'Wrong-Horse-7'));
  });
  afterAll(async () => {
    await app.close();
    await provider.stop();
  });

  let users = 0;
  /** Creates a new user with a ticket. */
  async function arrive() {
    users += 1;
    const email = `p${users}@example.com`;
    const outcome = outcomeOf(await provider.walk(app, { sub: email, email, email_verified: true }));
    return { ...outcome, email, oidc: outcome['oidc'] ?? '' };
  }
  /** A user who has come before, with another ticket; `token` is of the sign-in that it is for. */
  const again = async ({ email }: { email: string }, visit: { token?: string } = {}) =>
    outcomeOf(await provider.walk(app, { sub: email, email, email_verified: true }, visit));
  const idOf = (email: string) => {
    const store = secondConnection(app);
    const id = store.prepare('SELECT id FROM users WHERE email = ?').pluck().get(email);
    store.close();
    return String(id);
  };

  it('200: signs in once, and 401 like a wrong password from then on (AUTH-9, AUTH-56)', async () => {
    const ticket = await arrive();
    const { status, body } = await showTicket(app, ticket);
    expect([status, body.message, claimsOf(body.accessToken).email]).toEqual([
      200,
      'Fully authenticated',
      ticket.email,
    ]);
    expect((await app.with(body.accessToken).get('/org')).status).toBe(200);
    expect(neutral(await showTicket(app, ticket))).toEqual(wrong);
    expect(storedRows(app)['sign_in_tickets']).toEqual([]);
  });

  it('200: each coming back gives a ticket, and one does not end the other (AUTH-56)', async () => {
    const ticket = await arrive();
    const second = await again(ticket);
    expect(second['oidc']).not.toBe(ticket.oidc);
    expect((await showTicket(app, second)).status).toBe(200);
    expect((await showTicket(app, ticket)).status).toBe(200);
  });

  it('401: after two minutes, and not before (AUTH-56)', async () => {
    const expiresAt = (email: string) => {
      const store = secondConnection(app);
      const sql = 'SELECT max(expires_at) FROM sign_in_tickets WHERE user_id = ?';
      const at = store.prepare(sql).pluck().get(idOf(email));
      store.close();
      return Number(at);
    };
    const late = await arrive();
    const nowMs = clock.now();
    expect(expiresAt(late.email) - nowMs).toBeLessThanOrEqual(120_000);
    expect(expiresAt(late.email) - nowMs).toBeGreaterThan(60_000);
    clock.set(expiresAt(late.email));
    expect(neutral(await showTicket(app, late))).toEqual(wrong);
    clock.set(expiresAt(late.email) - 20_000);
    expect((await showTicket(app, late)).status).toBe(200);
    clock.set(nowMs);
  });

  it.each(['', 'x', `lkt_${'A'.repeat(43)}`, 'a'.repeat(200), "' OR 1=1 --"])(
    '401: for the made-up %j (AUTH-9)',
    async (oidc) => {
      const { email, oidc: good } = await arrive();
      const token = signInOfTicket.get(good) ?? '';
      expect(neutral(await showTicket(app, { email, oidc }, token))).toEqual(wrong);
      expect((await showTicket(app, { email, oidc: good }, token)).status).toBe(200);
    },
  );

  it('401: for a ticket spelled otherwise (AUTH-9)', async () => {
    const { email, oidc } = await arrive();
    for (const other of [` ${oidc}`, `${oidc} `, `${oidc}=`, oidc.toUpperCase(), oidc.slice(0, -1)]) {
      expect(neutral(await showTicket(app, { email, oidc: other }, signInOfTicket.get(oidc)))).toEqual(wrong);
    }
    expect((await showTicket(app, { email, oidc })).status).toBe(200);
  });

  it('401: for anyone else, whom it stays valid for its owner after (AUTH-9, AUTH-56)', async () => {
    const mine = await arrive();
    const { email } = await arrive();
    expect(neutral(await showTicket(app, { ...mine, email }))).toEqual(wrong);
    expect(neutral(await showTicket(app, { ...mine, email: 'nobody@example.com' }))).toEqual(wrong);
    expect(neutral(await showTicket(app, { ...mine, email: 'ada@example.com' }))).toEqual(wrong);
    expect((await showTicket(app, mine)).status).toBe(200);
  });

  it('401: as any other credential (AUTH-28)', async () => {
    const { email, oidc } = await arrive();
    const headers = { 'x-session-token': signInOfTicket.get(oidc) ?? '' };
    const asMethod = (method: string, credentials: unknown) =>
      app.anonymous.post('/userAccount/authenticate', { method, credentials, email }, { headers });
    expect((await asMethod('password', { password: oidc })).status).toBe(401);
    expect((await asMethod('otp', { otp: oidc })).status).toBe(400);
    expect((await asMethod('oidc', { password: oidc })).status).toBe(401);
    expect((await asMethod('password', { oidc })).status).toBe(401);
    expect((await app.with(oidc).get('/org')).status).toBe(401);
    expect((await app.with(oidc).post('/userAccount/refresh/token')).status).toBe(401);
    expect((await showTicket(app, { email, oidc }, oidc)).status).toBe(401);
    expect((await showTicket(app, { email, oidc })).status).toBe(200);
  });

  it('401: while the method is not allowed; the ticket is not used up by that (AUTH-10)', async () => {
    const ticket = await arrive();
    await allowOidc(admin, [['password']]);
    expect(neutral(await showTicket(app, ticket))).toEqual(wrong);
    await allowOidc(admin);
    expect((await showTicket(app, ticket)).status).toBe(200);
  });

  it('401: once its owner was deleted, and after the restoring, too (AUTH-40, USER-35)', async () => {
    const ticket = await arrive();
    const id = idOf(ticket.email);
    await app.deleteUser(id);
    expect(neutral(await showTicket(app, ticket))).toEqual(wrong);
    expect((await admin.post(`/users/${id}/restore`)).status).toBe(200);
    expect(neutral(await showTicket(app, ticket))).toEqual(wrong);
    expect((await showTicket(app, await again(ticket))).status).toBe(200);
  });

  it('401: when its owner is deleted between the look at the ticket and the session (AUTH-27, USER-35)', async () => {
    const ticket = await arrive();
    const gate = holdNext(app.services.db, 'transaction');
    const response = showTicket(app, ticket);
    await gate.arrived;
    await app.deleteUser(idOf(ticket.email));
    gate.open();
    expect(neutral(await response)).toEqual(wrong);
  });

  it('200 for one of 32 at once, 401 for all others (AUTH-9, AUTH-56)', async () => {
    const ticket = await arrive();
    const before = storedRows(app)['sessions']?.length ?? 0;
    // All have seen that the ticket is good before the first one uses it up.
    holdUntil(app.services.db, 'transaction', 32);
    const responses = await Promise.all(Array.from({ length: 32 }, () => showTicket(app, ticket)));
    const statuses = responses.map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 401)).toHaveLength(31);
    expect(storedRows(app)['sessions']).toHaveLength(before + 1);
  });

  it('is stored as a hash alone (AUDIT-6)', async () => {
    const { oidc } = await arrive();
    const stored = JSON.stringify(storedRows(app));
    expect(stored).not.toContain(oidc);
    expect(app.logLines.join('\n')).not.toContain(oidc);
  });

  describe('as one step of several', () => {
    beforeAll(async () => {
      await showTicket(app, await again({ email: 'ada@example.com' }));
    });

    const step = (email: string, token: string, given: Record<string, unknown>) =>
      app.anonymous.post('/userAccount/authenticate', { email, ...given }, { headers: { 'x-session-token': token } });
    const byPassword = { method: 'password', credentials: { password } };

    it('200: the second one; the answer of the first says where to go (AUTH-8, AUTH-48)', async () => {
      await allowOidc(admin, [['password'], ['oidc']]);
      const begun = await app.anonymous.post('/userAccount/initAuth', {});
      expect([begun.body.allowedMethods, begun.body.authProviders]).toEqual([['password'], {}]);
      const token = begun.headers.get('x-session-token') ?? '';
      const { status, body } = await step('ada@example.com', token, byPassword);
      const authProviders = authProvidersOf(token);
      expect([status, body]).toEqual([
        200,
        { status: 'success', nextStep: 1, allowedMethods: ['oidc'], authProviders },
      ]);
      const other = await arrive();
      expect((await showTicket(app, { ...other, email: 'ada@example.com' }, token)).status).toBe(401);
      const others = await again(other, { token });
      expect((await showTicket(app, { ...others, email: 'ada@example.com' }, token)).status).toBe(401);
      expect((await showTicket(app, others, token)).status).toBe(401);
      const elsewhere = await again({ email: 'ada@example.com' });
      expect((await showTicket(app, elsewhere, token)).status).toBe(401);
      const mine = await again({ email: 'ada@example.com' }, { token });
      expect((await showTicket(app, mine, token)).body.message).toBe('Fully authenticated');
    });

    it('200: the first one; the ticket is used up by it (AUTH-8, AUTH-48, AUTH-56)', async () => {
      await allowOidc(admin, [['oidc'], ['password']]);
      const { body: begun, headers } = await app.anonymous.post('/userAccount/initAuth', {});
      const token = headers.get('x-session-token') ?? '';
      expect([begun.allowedMethods, begun.authProviders]).toEqual([['oidc'], authProvidersOf(token)]);
      const ticket = await again({ email: 'ada@example.com' }, { token });
      const { body } = await showTicket(app, ticket, token);
      const next = { status: 'success', nextStep: 1, allowedMethods: ['password'], authProviders: {} };
      expect(body).toEqual(next);
      expect((await showTicket(app, ticket, token)).status).toBe(401);
      expect((await step('ada@example.com', token, byPassword)).body.message).toBe('Fully authenticated');
      // Once through, the sign-in is at its first step again, at which the ticket was good.
      expect((await showTicket(app, ticket, token)).status).toBe(401);
    });

    it('401: a ticket does not stand for a step before (AUTH-10)', async () => {
      await allowOidc(admin, [['password'], ['oidc']]);
      expect((await showTicket(app, await again({ email: 'ada@example.com' }))).status).toBe(401);
    });
  });
});
