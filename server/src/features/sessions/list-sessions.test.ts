import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attemptSignIn } from '../../../test/support/sign-in.ts';
import { type Client, type Json, password, TestApp } from '../../../test/support/test-app.ts';
import { hashCredential } from '../../base/secret.ts';

const path = '/userAccount/sessions';
const minute = 60_000;
const day = 24 * 60 * minute;

describe('GET /userAccount/sessions', () => {
  let app: TestApp;
  let admin: Client;
  let users = 0;
  beforeAll(async () => {
    app = await TestApp.start({ TRUST_PROXY: '127.0.0.1' });
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  /** Creates a user with one session. */
  async function someUser(): Promise<{ email: string; client: Client }> {
    users += 1;
    const email = `some-${users}@example.com`;
    return { email, client: await app.member(await app.signIn('ada@example.com'), email) };
  }

  async function signIn(email: string, network = '198.51.100.7'): Promise<Json> {
    const { body } = await attemptSignIn(app, { email, password, headers: { 'x-forwarded-for': network } });
    return body;
  }

  const listed = async (client: Client): Promise<Json[]> => (await client.get(path)).body.sessions;
  const iso = (ms: number) => new Date(ms).toISOString();
  const wholeSecond = (ms: number) => Math.floor(ms / 1_000) * 1_000;

  it('200: the own ones, the latest active first, and which is this one (AUTH-53)', async () => {
    const { email, client } = await someUser();
    const startedMs = app.clock.now();
    app.clock.advance(minute);
    const second = await signIn(email, '2001:db8::7');
    const response = await app.with(second.accessToken).get(path);
    expect(response.status).toBe(200);
    const id = expect.stringMatching(/^[a-f0-9]{24}$/);
    const at = (ms: number) => ({
      createdAt: iso(ms),
      lastActiveAt: iso(ms),
      expiresAt: iso(wholeSecond(ms) + 30 * day),
    });
    expect(response.body).toEqual({
      sessions: [
        { id, isCurrent: true, network: '2001:db8::7', ...at(startedMs + minute) },
        { id, isCurrent: false, network: '127.0.0.1', ...at(startedMs) },
      ],
    });
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect((await listed(client)).map(({ isCurrent }) => isCurrent)).toEqual([false, true]);
  });

  it('200: a refresh makes a session the latest active, with a later end and the same id (AUTH-15, AUTH-53)', async () => {
    const { email } = await someUser();
    const tokens = await signIn(email);
    app.clock.advance(minute);
    await signIn(email);
    const before = (await listed(app.with(tokens.accessToken))).find(({ isCurrent }) => isCurrent);
    app.clock.advance(minute);
    const { body: refreshed } = await app.with(tokens.refreshToken).post('/userAccount/refresh/token');
    const [first, ...others] = await listed(app.with(refreshed.accessToken));
    const nowMs = app.clock.now();
    const expiresAt = iso(wholeSecond(nowMs) + 30 * day);
    expect(first).toEqual({ ...before, isCurrent: true, lastActiveAt: iso(nowMs), expiresAt });
    expect(others).toHaveLength(2);
    // A call that is no refresh does not count as activity.
    app.clock.advance(minute);
    expect((await listed(app.with(refreshed.accessToken)))[0]).toEqual(first);
  });

  it("200: without those that have ended, are expired, or are someone else's (AUTH-53)", async () => {
    const { email, client } = await someUser();
    const other = await someUser();
    const [gone, left] = [await signIn(email), await signIn(email)];
    expect(await listed(client)).toHaveLength(3);
    await app.with(gone.accessToken).post('/userAccount/logout/manual');
    const ids = (await listed(client)).map(({ id }) => id);
    expect(ids).toHaveLength(2);
    const others = (await listed(other.client)).map(({ id }) => id);
    expect(ids.filter((id) => others.includes(id))).toEqual([]);
    expect((await listed(admin)).filter(({ id }) => ids.includes(id))).toEqual([]);

    // The last instant of the two that are never refreshed.
    app.clock.set(wholeSecond(app.clock.now()));
    app.clock.advance(day - minute);
    const { body: kept } = await app.with(left.refreshToken).post('/userAccount/refresh/token');
    app.clock.advance(29 * day + minute - 1);
    const { body: later } = await app.with(kept.refreshToken).post('/userAccount/refresh/token');
    expect(await listed(app.with(later.accessToken))).toHaveLength(2);
    app.clock.advance(1);
    expect((await listed(app.with(later.accessToken))).map(({ isCurrent }) => isCurrent)).toEqual([true]);
  });

  it('200: at most 100, the latest active (AUTH-53)', async () => {
    const { client } = await someUser();
    const { db, newId } = app.services;
    const [own] = await db.read.selectFrom('sessions').where('user_id', '=', client.userId).selectAll().execute();
    if (!own) throw new Error('no session');
    const nowMs = app.clock.now();
    const sessions = Array.from({ length: 104 }, (_, place) => ({ ...own, id: newId(), active_at: nowMs - 1 - place }));
    const tokens = sessions.map(({ id }) => ({ hash: hashCredential(id), session_id: id, kind: 'refresh' as const }));
    await db.transaction(async (tx) => {
      await tx.insertInto('sessions').values(sessions).execute();
      const rows = tokens.map((token) => ({ ...token, expires_at: nowMs + day }));
      await tx.insertInto('session_tokens').values(rows).execute();
    });
    const shown = (await listed(client)).map(({ id }) => id);
    expect(shown).toEqual([own.id, ...sessions.slice(0, 99).map(({ id }) => id)]);
  });

  it('200: where a session of an earlier release began is not known (AUTH-53)', async () => {
    const { client } = await someUser();
    await app.services.db.transaction((tx) =>
      tx.updateTable('sessions').set({ network: null, active_at: null }).where('user_id', '=', client.userId).execute(),
    );
    const [only] = await listed(client);
    expect(only).toMatchObject({ network: null, lastActiveAt: only.createdAt });
  });

  it('403: a personal access token, whatever its scopes (AUTH-32)', async () => {
    const token = await (await app.signIn('ada@example.com')).token();
    expect(await token.get(path)).toMatchObject({ status: 403, body: { error: { code: 'FORBIDDEN' } } });
  });

  it('401: no one (AUTH-19)', async () => {
    expect((await app.anonymous.get(path)).status).toBe(401);
  });
});
