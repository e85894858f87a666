import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hashCredential } from '../../src/base/secret.ts';
import { bareJwt, claimsOf, headerOf } from '../support/jwt.ts';
import { tokenIn } from '../support/mail-server.ts';
import { secondConnection, storedRows } from '../support/second-connection.ts';
import { issuedTo, registerService } from '../support/service-clients.ts';
import { SignInDesk } from '../support/sign-in-desk.ts';
import { password } from '../support/test-app.ts';

const email = 'ada@example.com';
const randomBytesMin = 16;
const sharedSecret = 'kM3vX8qLz1RtY6wB0nHs4GjP7dFuC2eA';

describe.each([
  ['EdDSA', {}],
  ['HS256', { JWT_ALGORITHM: 'HS256', JWT_SECRET: sharedSecret }],
])('a credential, with the whole store, the keys and the audit log at hand (CRED-1, %s)', (_algorithm, environment) => {
  let desk: SignInDesk;
  const jwts = new Map<string, string>();
  const opaque = new Map<string, string>();
  /** Every row of every table and every file, as text. */
  let backup: string;

  beforeAll(async () => {
    desk = await SignInDesk.start(environment);
    const { app, admin } = desk;
    const pair = (await app.signInTokens(email)).body;
    const token = await admin.token({ expiryDays: 'never' });
    const service = await registerService(admin);
    jwts.set('session', pair.accessToken);
    jwts.set('refresh token', pair.refreshToken);
    jwts.set('personal access token', bareJwt(token.credential ?? ''));
    jwts.set('token made by a token', bareJwt((await token.token()).credential ?? ''));
    jwts.set('scoped token', (await issuedTo(app, service)).credential);
    jwts.set('x-session-token', await desk.begin(email));
    opaque.set('client secret', service.clientSecret);
    await app.anonymous.post('/userAccount/password/forgot', { email });
    opaque.set('secret of a reset link', tokenIn(await desk.mail.mailTo(email)));
    const { _id } = (await admin.post('/users', { fullName: 'Guest', email: 'guest@example.com' })).body;
    opaque.set('secret of an invitation link', (await admin.post(`/users/${_id}/invite-link`)).body.link.split('=')[1]);
    const files = readdirSync(app.dataDir).map((name) => readFileSync(join(app.dataDir, name), 'latin1'));
    backup = [JSON.stringify(storedRows(app)), ...files, ...app.logLines].join('\n');
  });
  afterAll(() => desk.close());

  /** Signs with the keys that the credential was signed with. */
  async function resign(jwt: string, claims: Readonly<Record<string, unknown>>): Promise<string> {
    const { sign, signInternal: seal } = desk.app.services.keys;
    const made = headerOf(jwt)['typ'] === 'sealed+jwt' ? await seal(claims) : await sign(claims);
    return made.expose();
  }

  it.each([
    'session',
    'refresh token',
    'personal access token',
    'token made by a token',
    'scoped token',
    'x-session-token',
  ])('is not made again without its random part: %s', async (kind) => {
    const jwt = jwts.get(kind) ?? '';
    const claims = claimsOf(jwt);
    // All of it but that part suffices for nothing; with it, the same token comes out: nothing else was missing.
    const rebuilt = await resign(jwt, { ...claims, rnd: undefined });
    expect(rebuilt === jwt).toBe(false);
    expect(JSON.stringify(storedRows(desk.app)).includes(hashCredential(rebuilt))).toBe(false);
    expect(await resign(jwt, claims)).toBe(jwt);
    const random = Buffer.from(String(claims['rnd']), 'base64url');
    expect(random.length).toBeGreaterThanOrEqual(randomBytesMin);
    for (const form of ['base64url', 'base64', 'hex'] as const) expect(backup).not.toContain(random.toString(form));
  });

  it.each(['client secret', 'secret of a reset link', 'secret of an invitation link'])(
    'is random and nowhere in them: %s',
    (kind) => {
      const random = Buffer.from((opaque.get(kind) ?? '').slice('lkx_'.length), 'base64url');
      expect(random.length).toBeGreaterThanOrEqual(randomBytesMin);
      for (const form of ['base64url', 'base64', 'hex'] as const) expect(backup).not.toContain(random.toString(form));
    },
  );

  it('is another one each time, whatever the moment', async () => {
    const pairs = await Promise.all(['1', '2', '3'].map(() => desk.app.signInTokens(email)));
    expect(new Set(pairs.map(({ body }) => claimsOf(body.accessToken)['rnd'])).size).toBe(3);
  });

  it('401: a sign-in that has come to its second step is not gone on with by what is stored of it', async () => {
    await desk.setSteps(['password'], ['otp']);
    const token = await desk.begin(email);
    expect((await desk.take(token, ['password', password])).body.nextStep).toBe(1);
    const [{ id }] = storedRows(desk.app)['sign_in_progress'] ?? [];
    const { keys } = desk.app.services;
    const { rnd: _, ...claims } = claimsOf(token);
    for (const forged of [
      { rnd: undefined },
      { rnd: id },
      { jti: id },
      { jti: id, rnd: undefined },
      { jti: id, rnd: id },
    ]) {
      const otp = await desk.codeFor(email);
      expect((await desk.take((await keys.signInternal({ ...claims, ...forged })).expose(), ['otp', otp])).status).toBe(
        401,
      );
    }
    expect((await desk.take(token, ['otp', await desk.codeFor(email)])).status).toBe(200);
    await desk.setSteps(['password', 'otp']);
  });

  it('goes on working where an earlier release made it, without a random part', async () => {
    const { app, admin } = desk;
    const token = await admin.token();
    const signed = await app.services.keys.sign({ ...claimsOf(token.credential ?? ''), rnd: undefined });
    const old = signed.expose();
    const store = secondConnection(app);
    store.prepare('UPDATE personal_access_tokens SET hash = ? WHERE id = ?').run(hashCredential(old), token.tokenId);
    store.close();
    expect((await app.with(old).get('/org')).status).toBe(200);
    expect((await token.get('/org')).status).toBe(401);
    await desk.setSteps(['password'], ['otp']);
    const begun = await app.services.keys.signInternal({ ...claimsOf(await desk.begin(email)), rnd: undefined });
    expect((await desk.take(begun.expose(), ['password', password])).body.nextStep).toBe(1);
    expect((await desk.take(begun.expose(), ['otp', await desk.codeFor(email)])).status).toBe(200);
  });
});
