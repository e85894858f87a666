import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { claimsOf } from '../../../test/support/sign-in.ts';
import { type Client, type Json, TestApp, type TestResponse } from '../../../test/support/test-app.ts';
import { hashCredential, Secret } from '../../base/secret.ts';
import { encryptionWith, makeEncryptionKey } from '../../keys/encryption.ts';
import { pruneSessions } from './public.ts';
import { decryptSuccessor, exposePair } from './session-pair-actions.ts';

const email = 'ada@example.com';
const path = '/userAccount/refresh/token';
const second = 1_000;
const day = 86_400 * second;
const expired = {
  status: 401,
  body: { message: 'Session expired, please login again', error: { code: 'SESSION_EXPIRED' } },
};
const invalid = { status: 401, body: { error: { code: 'TOKEN_INVALID' } } };

describe('POST /userAccount/refresh/token', () => {
  let app: TestApp;
  let admin: Client;
  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  beforeEach(() => {
    // Tokens count whole seconds; so do the limits below.
    app.clock.set(Math.floor(app.clock.now() / second) * second);
  });
  afterAll(() => app.close());

  const refresh = (token: string): Promise<TestResponse> => app.with(token).post(path);
  const tokensOf = async (accessToken: string) => {
    const { db } = app.services;
    const own = db.read.selectFrom('session_tokens').where('hash', '=', hashCredential(accessToken));
    const { session_id: id } = await own.select('session_id').executeTakeFirstOrThrow();
    return db.read.selectFrom('session_tokens').where('session_id', '=', id).selectAll().execute();
  };
  const look = (token: string): Promise<TestResponse> => app.with(token).get('/org');

  it('200: the user and the next pair; the access token so far goes on (AUTH-14, AUTH-15)', async () => {
    const { body: first } = await app.signInTokens(email);
    app.clock.advance(5 * second);
    const { status, body } = await refresh(first.refreshToken);
    expect(status).toBe(200);
    const { _id: orgId } = (await admin.get('/org')).body;
    expect(body).toEqual({
      user: { _id: admin.userId, userId: admin.userId, orgId, email, fullName: 'Ada Lovelace' },
      accessToken: expect.any(String),
      refreshToken: expect.any(String),
    });
    expect(body.refreshToken).not.toBe(first.refreshToken);
    const claims = claimsOf(body.accessToken);
    expect(claims).toMatchObject({
      tokenType: 'session',
      accountType: 'business',
      email,
      iat: app.clock.now() / second,
    });
    expect(claims.exp - claims.iat).toBe(86_400);
    for (const token of [first.accessToken, body.accessToken]) expect((await look(token)).status).toBe(200);
    expect((await refresh(body.refreshToken)).status).toBe(200);
  });

  it('200: a rotated token answers the same pair for 10 seconds, also many at once, and no second chain (SESSION-5)', async () => {
    const { body: first } = await app.signInTokens(email);
    const atOnce = await Promise.all(Array.from({ length: 32 }, () => refresh(first.refreshToken)));
    app.clock.advance(10 * second - 1);
    const responses = [...atOnce, await refresh(first.refreshToken), await refresh(first.refreshToken)];
    expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 200));
    const [pair] = responses.map(({ body }) => body);
    for (const { body } of responses) expect(body).toEqual(pair);
    expect((await look(pair.accessToken)).status).toBe(200);
    expect(await tokensOf(pair.accessToken)).toHaveLength(4);
    const { body: next } = await refresh(pair.refreshToken);
    expect(await refresh(pair.refreshToken)).toMatchObject({ status: 200, body: next });
  });

  it('the pair of an exchange is stored for its holder alone, and no longer than it is answered (SESSION-5)', async () => {
    const { body: first } = await app.signInTokens(email);
    const { body: next } = await refresh(first.refreshToken);
    const sealed = (await tokensOf(first.accessToken)).flatMap(({ successor }) => successor ?? []);
    expect(sealed).toHaveLength(1);
    const { encryption } = app.services;
    // With the keys and the store, but without the token itself: neither its hash nor a later token opens it.
    for (const known of [hashCredential(first.refreshToken), next.refreshToken, first.accessToken, '']) {
      expect(await decryptSuccessor({ encryption }, new Secret(known), sealed[0] ?? '')).toBeNull();
    }
    const otherKey = encryptionWith(makeEncryptionKey());
    const presented = new Secret(first.refreshToken);
    expect(await decryptSuccessor({ encryption: otherKey }, presented, sealed[0] ?? '')).toBeNull();
    const opened = await decryptSuccessor({ encryption }, presented, sealed[0] ?? '');
    expect(opened && exposePair(opened)).toEqual({ accessToken: next.accessToken, refreshToken: next.refreshToken });
    app.clock.advance(10 * second);
    await pruneSessions(app.services);
    expect((await tokensOf(first.accessToken)).every(({ successor }) => successor === null)).toBe(true);
    await refresh(next.refreshToken);
    app.clock.advance(10 * second);
  });

  it('401: what cannot be answered again ends nothing (SESSION-5)', async () => {
    const { body: first } = await app.signInTokens(email);
    const { body: next } = await refresh(first.refreshToken);
    await app.services.db.transaction((tx) =>
      tx.updateTable('session_tokens').set({ successor: null }).where('successor', 'is not', null).execute(),
    );
    expect(await refresh(first.refreshToken)).toMatchObject(expired);
    expect((await refresh(next.refreshToken)).status).toBe(200);
  });

  it('401: a session ends 90 days after the sign-in, refreshed or not, and no token says more (SESSION-4)', async () => {
    const { body: first } = await app.signInTokens(email);
    const endMs = app.clock.now() + 90 * day;
    const id = (await app.with(first.accessToken).get('/userAccount/sessions')).body.sessions.find(
      ({ isCurrent }: Json) => isCurrent,
    ).id;
    let pair = first;
    for (const days of [29, 29, 29]) {
      app.clock.advance(days * day);
      pair = (await refresh(pair.refreshToken)).body;
    }
    expect([claimsOf(pair.refreshToken).exp, claimsOf(pair.accessToken).exp]).toEqual([
      endMs / second,
      app.clock.now() / second + 86_400,
    ]);
    app.clock.set(endMs - second);
    pair = (await refresh(pair.refreshToken)).body;
    expect([claimsOf(pair.refreshToken).exp, claimsOf(pair.accessToken).exp]).toEqual([endMs / second, endMs / second]);
    const listed = (await app.with(pair.accessToken).get('/userAccount/sessions')).body.sessions;
    expect(listed.find(({ isCurrent }: Json) => isCurrent)).toMatchObject({ expiresAt: new Date(endMs).toISOString() });
    app.clock.set(endMs);
    expect(await look(pair.accessToken)).toMatchObject(expired);
    expect(await refresh(pair.refreshToken)).toMatchObject(expired);
    const { sessions } = (await (await app.signIn(email)).get('/userAccount/sessions')).body;
    expect(sessions.map((one: Json) => one.id)).not.toContain(id);
  });

  it('401: a shorter SESSION_MAX_DAYS holds for sessions that there are (SESSION-4)', async () => {
    const { body: pair } = await app.signInTokens(email);
    app.clock.advance(day - 1);
    try {
      Object.assign(app.environment, { SESSION_MAX_DAYS: '1' });
      app.services.reloadConfig();
      const { body: next } = await refresh(pair.refreshToken);
      expect((await look(next.accessToken)).status).toBe(200);
      app.clock.advance(1);
      for (const { accessToken } of [pair, next]) expect(await look(accessToken)).toMatchObject(expired);
      expect(await refresh(next.refreshToken)).toMatchObject(expired);
    } finally {
      delete app.environment['SESSION_MAX_DAYS'];
      app.services.reloadConfig();
    }
  });

  it('200: without rotation one refresh token works for its 30 days, and is answered again (SESSION-7)', async () => {
    try {
      Object.assign(app.environment, { REFRESH_ROTATION: 'off' });
      app.services.reloadConfig();
      const { body: first } = await app.signInTokens(email);
      const accessTokens = new Set([first.accessToken]);
      for (const days of [1, 14, 14]) {
        app.clock.advance(days * day);
        const { status, body } = await refresh(first.refreshToken);
        expect([status, body.refreshToken]).toEqual([200, first.refreshToken]);
        expect((await look(body.accessToken)).status).toBe(200);
        accessTokens.add(body.accessToken);
      }
      expect(accessTokens.size).toBe(4);
      app.clock.advance(day);
      expect(await refresh(first.refreshToken)).toMatchObject(expired);
    } finally {
      delete app.environment['REFRESH_ROTATION'];
      app.services.reloadConfig();
    }
  });

  it('401: a use 10 seconds after ends every token of the family, and of no other (AUTH-17)', async () => {
    const { body: other } = await app.signInTokens(email);
    const { body: first } = await app.signInTokens(email);
    const { body: second_ } = await refresh(first.refreshToken);
    const { body: third } = await refresh(second_.refreshToken);
    app.clock.advance(10 * second);
    expect((await look(third.accessToken)).status).toBe(200);
    expect(await refresh(first.refreshToken)).toMatchObject(expired);
    for (const { accessToken, refreshToken } of [first, second_, third]) {
      expect(await look(accessToken)).toMatchObject(expired);
      expect(await refresh(refreshToken)).toMatchObject(expired);
    }
    expect((await look(other.accessToken)).status).toBe(200);
    expect((await refresh(other.refreshToken)).status).toBe(200);
  });

  it('401: the audit log has each exchange and the one reuse (AUDIT-1)', async () => {
    const before = (await app.audit()).length;
    const { body: first } = await app.signInTokens(email);
    await refresh(first.refreshToken);
    app.clock.advance(10 * second);
    await refresh(first.refreshToken);
    await refresh(first.refreshToken);
    const rows = (await app.audit()).slice(before);
    expect(rows.map(({ action }) => action)).toEqual([
      'session.started',
      'session.refreshed',
      'session.refresh-reused',
    ]);
    expect(new Set(rows.map(({ subject_id }) => subject_id)).size).toBe(1);
    const ended = await app.services.db.read
      .selectFrom('sessions')
      .where('id', '=', rows[0].subject_id)
      .selectAll()
      .executeTakeFirst();
    expect(ended).toMatchObject({ ended_at: app.clock.now(), end_reason: 'refresh-reuse' });
  });

  it('401: exactly 30 days after it was made (AUTH-15)', async () => {
    const { body: first } = await app.signInTokens(email);
    const { body: late } = await app.signInTokens(email);
    app.clock.advance(30 * day - 1);
    expect((await refresh(first.refreshToken)).status).toBe(200);
    app.clock.advance(1);
    expect(await refresh(late.refreshToken)).toMatchObject(expired);
  });

  it('200: each exchange begins 30 days anew (AUTH-15)', async () => {
    let { body: pair } = await app.signInTokens(email);
    for (let month = 0; month < 3; month += 1) {
      app.clock.advance(29 * day);
      const { status, body } = await refresh(pair.refreshToken);
      expect(status).toBe(200);
      pair = body;
    }
    expect((await look(pair.accessToken)).status).toBe(200);
  });

  it('401: nothing, something malformed and something invented (AUTH-19, AUTH-20, AUTH-26)', async () => {
    expect(await app.anonymous.post(path)).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } });
    const basic = await app.anonymous.post(path, undefined, { headers: { authorization: 'Basic eDp5' } });
    expect(basic).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } });
    const { body: first } = await app.signInTokens(email);
    const [head, claims, signature] = first.refreshToken.split('.');
    const signedByUs = await app.services.keys.signInternal(claimsOf(first.refreshToken));
    for (const token of ['x', `${head}.${claims}.`, `${head}.${claims}.${signature}=`, `lkpat_${first.refreshToken}`]) {
      const response = await refresh(token);
      expect(response, token).toMatchObject(invalid);
      expect(response.headers.get('www-authenticate')).toBe('Bearer realm="latchkey", error="invalid_token"');
    }
    // The same claims signed by our own key are the same token; other claims are a token that was never issued.
    expect(signedByUs.expose()).toBe(first.refreshToken);
    const invented = await app.services.keys.signInternal({ ...claimsOf(first.refreshToken), jti: '0'.repeat(24) });
    expect(await refresh(invented.expose())).toMatchObject(invalid);
  });

  it('401: a deleted person, and everyone once the organization was deleted (AUTH-24, ORG-26)', async () => {
    admin = await app.signIn(email);
    await app.member(admin, 'gone@example.com');
    const { body: gone } = await app.signInTokens('gone@example.com');
    await app.deleteUser(claimsOf(gone.accessToken).userId);
    expect(await refresh(gone.refreshToken)).toMatchObject(invalid);
    const { body: own } = await app.signInTokens(email);
    await app.deleteOrganization();
    expect(await refresh(own.refreshToken)).toMatchObject(invalid);
  });
});
