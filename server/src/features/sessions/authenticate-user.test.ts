import { createRemoteJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attemptSignIn, beginSignIn, claimsOf, neutral } from '../../../test/support/sign-in.ts';
import { type Client, password, TestApp, type TestResponse } from '../../../test/support/test-app.ts';

const email = 'ada@example.com';
const path = '/userAccount/authenticate';
const hour = 3_600_000;

describe('POST /userAccount/authenticate', () => {
  let app: TestApp;
  let admin: Client;
  beforeAll(async () => {
    app = await TestApp.start({ BASE_URL: 'https://id.example.com' });
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  it('200: the pair of tokens and nothing more (AUTH-6, AUTH-7)', async () => {
    const { status, body } = await attemptSignIn(app, { email, password });
    expect(status).toBe(200);
    const jwt = expect.stringMatching(/^eyJ[\w-]+\.[\w-]+\.[\w-]+$/);
    expect(body).toEqual({ message: 'Fully authenticated', accessToken: jwt, refreshToken: jwt });
    expect(body.accessToken).not.toBe(body.refreshToken);
    expect((await app.with(body.accessToken).get('/org')).status).toBe(200);
  });

  it('200: claims of the access token, signed with the published key (AUTH-12, AUTH-13, AUTH-35)', async () => {
    const { body } = await attemptSignIn(app, { email, password });
    const keys = createRemoteJWKSet(new URL(`${app.url}/.well-known/jwks.json`));
    const { payload, protectedHeader } = await jwtVerify(body.accessToken, keys, {
      currentDate: new Date(app.clock.now()),
    });
    expect(protectedHeader.alg).toBe('EdDSA');
    const iat = Math.floor(app.clock.now() / 1_000);
    const org = (await admin.get('/org')).body;
    expect(payload).toEqual({
      userId: admin.userId,
      orgId: org._id,
      email,
      fullName: 'Ada Lovelace',
      accountType: 'business',
      rnd: expect.stringMatching(/^[\w-]{22}$/),
      jti: expect.stringMatching(/^[a-f0-9]{24}$/),
      iat,
      exp: iat + 86_400,
      iss: 'https://id.example.com',
      tokenType: 'session',
    });
    expect(claimsOf(body.refreshToken)).toMatchObject({ tokenType: 'refresh', exp: iat + 30 * 86_400 });
  });

  it('200: the address may be named at the beginning only, or in another spelling (AUTH-6, AUTH-10)', async () => {
    expect((await attemptSignIn(app, { begunWith: email, password })).status).toBe(200);
    expect((await attemptSignIn(app, { begunWith: email, email: ' ADA@Example.com', password })).status).toBe(200);
  });

  it('200: the first complete sign-in sets hasLoggedIn, a failed one does not (AUTH-11)', async () => {
    const member = { fullName: 'Grace Hopper', email: 'grace@example.com' };
    const { body: user } = await admin.post('/users', member);
    const shown = async () => (await admin.get(`/users/${user._id}`)).body.hasLoggedIn;
    expect(await shown()).toBe(false);
    const { db, passwords } = app.services;
    const row = { user_id: user._id, password_hash: await passwords.hash(password), updated_at: 0 };
    await db.transaction((tx) => tx.insertInto('password_credentials').values(row).execute());
    expect((await attemptSignIn(app, { email: member.email, password: `${password}x` })).status).toBe(401);
    expect(await shown()).toBe(false);
    expect((await attemptSignIn(app, { email: member.email, password })).status).toBe(200);
    expect(await shown()).toBe(true);
  });

  it('200: recorded in the audit log, not among the entity events (AUDIT-1, EVENT-19)', async () => {
    const events = (await app.events()).length;
    expect((await attemptSignIn(app, { email, password })).status).toBe(200);
    const row = (await app.audit()).at(-1);
    expect(row).toMatchObject({ action: 'session.started', actor_user_id: admin.userId, network: '127.0.0.1' });
    const session = await app.services.db.read
      .selectFrom('sessions')
      .where('id', '=', row.subject_id)
      .selectAll()
      .execute();
    expect(session).toMatchObject([{ user_id: admin.userId, ended_at: null }]);
    expect(await app.events()).toHaveLength(events);
  });

  it('401: the same for an unknown person, a wrong password, a wrong method and a deleted person (AUTH-9)', async () => {
    const gone = await app.member(admin, 'gone@example.com');
    await app.deleteUser(gone.userId);
    const { body: noPassword } = await admin.post('/users', { fullName: 'Alan', email: 'alan@example.com' });
    const { passwords } = app.services;
    let compared = 0;
    const matches = passwords.matches.bind(passwords);
    passwords.matches = (stored, given) => {
      compared += 1;
      return matches(stored, given);
    };
    const attempts = [
      { email: 'eve@example.com', password },
      { email, password: `${password}x` },
      { email, password: '' },
      { email },
      { email, password, method: 'otp' },
      { email, password, method: 'oidc' },
      { email, password, method: 'PASSWORD' },
      { email: 'gone@example.com', password },
      { email: noPassword.email, password },
    ];
    const responses: TestResponse[] = [];
    for (const attempt of attempts) responses.push(await attemptSignIn(app, attempt));
    passwords.matches = matches;
    for (const response of responses) {
      expect(neutral(response)).toEqual({
        status: 401,
        body: {
          message: 'The credentials are not valid',
          error: { code: 'UNAUTHORIZED', message: 'The credentials are not valid' },
        },
      });
      expect(response.headers.get('www-authenticate')).toBe('Bearer realm="latchkey"');
    }
    // Each costs one comparison, so that timing reveals none of them.
    expect(compared).toBe(attempts.length);
  });

  it('401: the address cannot change on the way (AUTH-10)', async () => {
    await app.member(admin, 'mary@example.com');
    const refused = await attemptSignIn(app, { begunWith: 'mary@example.com', email, password });
    expect(refused).toMatchObject({ status: 401, body: { message: 'The credentials are not valid' } });
    expect(
      (await attemptSignIn(app, { begunWith: 'mary@example.com', email: 'mary@example.com', password })).status,
    ).toBe(200);
  });

  it('401: x-session-token is valid for exactly 1 hour (AUTH-3)', async () => {
    const start = app.clock.now();
    app.clock.set(Math.floor(start / 1_000) * 1_000);
    const token = await beginSignIn(app, email);
    const tryIt = () =>
      app.anonymous.post(
        path,
        { method: 'password', credentials: { password } },
        { headers: { 'x-session-token': token } },
      );
    app.clock.advance(hour - 1);
    expect((await tryIt()).status).toBe(200);
    app.clock.advance(1);
    expect(await tryIt()).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } });
    app.clock.set(start);
  });

  it('401: without a sign-in that has begun, or with a changed token (AUTH-6, AUTH-26)', async () => {
    const token = await beginSignIn(app, email);
    const [head = '', claims = '', signature = ''] = token.split('.');
    const forged = Buffer.from(JSON.stringify({ ...claimsOf(token), email: 'eve@example.com' })).toString('base64url');
    const none = Buffer.from('{"alg":"none","typ":"JWT"}').toString('base64url');
    const wrong = [undefined, '', 'x', `${head}.${forged}.${signature}`, `${none}.${claims}.`, `${head}.${claims}`];
    for (const value of wrong) {
      const headers: Record<string, string> = value === undefined ? {} : { 'x-session-token': value };
      const response = await app.anonymous.post(
        path,
        { method: 'password', credentials: { password }, email },
        { headers },
      );
      expect(response, value).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } });
      expect(response.headers.get('www-authenticate')).toBe('Bearer realm="latchkey"');
    }
  });

  it('400: a body that breaks the schema (ERR-10, HTTP-14)', async () => {
    const headers = { 'x-session-token': await beginSignIn(app) };
    const good = { method: 'password', credentials: { password }, email };
    const bad = [
      {},
      { ...good, method: 7 },
      { ...good, method: undefined },
      { ...good, credentials: undefined },
      { ...good, credentials: password },
      { ...good, credentials: { password: 7 } },
      { ...good, credentials: { password: ['x'] } },
      { ...good, email: 'nobody' },
      { ...good, email: { $ne: null } },
      { ...good, email: undefined },
    ];
    for (const body of bad) {
      const { status, body: error } = await app.anonymous.post(path, body, { headers });
      expect(status, JSON.stringify(body)).toBe(400);
      expect(error.error.code).toBe('VALIDATION_ERROR');
    }
  });

  it('401: no one signs in to an organization that was deleted (ORG-26)', async () => {
    await app.deleteOrganization();
    const refused = await attemptSignIn(app, { email, password });
    expect(refused).toMatchObject({ status: 401, body: { message: 'The credentials are not valid' } });
  });
});
