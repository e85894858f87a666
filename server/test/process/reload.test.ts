import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { day } from '../../src/base/clock.ts';
import { pruneTokens } from '../../src/features/tokens/public.ts';
import { FakeBackend, responding } from '../support/fake-backend.ts';
import { compactJwt, hmac } from '../support/jwt.ts';
import { linkIn, MailServer } from '../support/mail-server.ts';
import { attemptSignIn, claimsOf } from '../support/sign-in.ts';
import { type Client, type Json, organization, TestApp, type TokenClient } from '../support/test-app.ts';

const { contactEmail } = organization;
/** Configuration at the beginning of a test. */
const first = { BASE_URL: 'https://one.example.net', PAT_PREFIX: 'one' };

let app: TestApp;
let admin: Client;
let directory: string;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
  app = await TestApp.start(first);
  admin = await app.setUp();
});
afterAll(async () => {
  await app.close();
  rmSync(directory, { recursive: true });
});

/** Has the service run with these variables besides those that it began with; an empty one is unset. */
async function reload(changes: Readonly<Record<string, string>>): Promise<void> {
  Object.assign(app.environment, changes);
  const { status, text } = await app.service(['FETCH_CONFIG']).post('/users/updateAppConfig');
  expect([status, text]).toEqual([200, expect.any(String)]);
}

/** Returns the status for a service that signs its own tokens with a secret. */
async function signedWith(secret: string): Promise<number> {
  const exp = Math.floor(app.clock.now() / 1_000) + 60;
  const token = compactJwt({ alg: 'HS256' }, { scopes: ['FETCH_CONFIG'], exp }, hmac(secret));
  return (await app.with(token).post('/users/updateAppConfig')).status;
}

describe('after a reload (CONFIG-25, CONFIG-26)', () => {
  it('links lead to the new FRONTEND_URL, whose pages may read answers (CONFIG-12, HTTP-22)', async () => {
    const { body } = await admin.post('/users', { fullName: 'Grace Hopper', email: 'grace@example.com' });
    const link = async () => (await admin.post(`/users/${body._id}/invite-link`)).body.link.split('/reset-password')[0];
    const allowed = async (origin: string) => {
      const { headers } = await app.anonymous.get('/org/exists', { headers: { origin } });
      return headers.get('access-control-allow-origin') === origin;
    };
    const [one, two] = ['https://one.example.net', 'https://two.example.net'];
    expect([await link(), await allowed(one), await allowed(two)]).toEqual([one, true, false]);
    await reload({ FRONTEND_URL: two });
    expect([await link(), await allowed(one), await allowed(two)]).toEqual([two, false, true]);
    await reload({ CORS_ORIGINS: one });
    expect([await allowed(one), await allowed(two)]).toEqual([true, true]);
    await reload({ FRONTEND_URL: '', CORS_ORIGINS: '' });
    expect([await link(), await allowed(one), await allowed(two)]).toEqual([one, true, false]);
  });

  it('tokens name the new BASE_URL, and those from before go on (CONFIG-2, AUTH-31)', async () => {
    const before = await admin.token();
    await reload({ BASE_URL: 'https://two.example.net' });
    const { body } = await app.signInTokens(contactEmail);
    const made = await admin.token();
    const issuers = [before.credential, made.credential, body.accessToken].map((token) => claimsOf(token ?? '').iss);
    expect(issuers).toEqual(['https://one.example.net', 'https://two.example.net', 'https://two.example.net']);
    expect((await before.get('/org')).status).toBe(200);
    await reload(first);
  });

  it('tokens show the new PAT_PREFIX; an earlier one is taken as long as it is listed (CONFIG-8)', async () => {
    const before = await admin.token();
    const bare = before.credential?.replace('one_', '') ?? '';
    const statuses = () =>
      Promise.all(
        [`one_${bare}`, `two_${bare}`, bare].map(async (token) => (await app.with(token).get('/org')).status),
      );
    expect(await statuses()).toEqual([200, 401, 200]);
    await reload({ PAT_PREFIX: 'two' });
    expect(await statuses()).toEqual([401, 200, 200]);
    expect((await admin.token()).credential).toMatch(/^two_eyJ/);
    await reload({ PAT_PREFIXES_ACCEPTED: 'zero, one' });
    expect(await statuses()).toEqual([200, 200, 200]);
    await reload({ PAT_PREFIX: 'one', PAT_PREFIXES_ACCEPTED: '' });
    expect(await statuses()).toEqual([200, 401, 200]);
  });

  it('fewer MCP_SCOPES narrow tokens at their very next call, and more widen them again (CONFIG-9, SCOPE-9)', async () => {
    const token = await admin.token({ scopes: ['org:read', 'user:read'] });
    const statuses = async () => [(await token.get('/org')).status, (await token.get('/users')).status];
    const grantable = async () => (await admin.get('/personal-access-tokens/scopes')).body.scopes.length;
    const all = await grantable();
    // Called twice: what verification keeps in memory is there from the first call on.
    for (let round = 0; round < 3; round += 1) {
      expect([await statuses(), await statuses()]).toEqual([
        [200, 200],
        [200, 200],
      ]);
      await reload({ MCP_SCOPES: 'org:read token:read' });
      expect([await statuses(), await statuses(), await grantable()]).toEqual([[200, 403], [200, 403], 2]);
      expect((await admin.post('/personal-access-tokens', { name: 'x', scopes: ['user:read'] })).status).toBe(400);
      await reload({ MCP_SCOPES: '' });
    }
    expect(await statuses()).toEqual([200, 200]);
    expect(await grantable()).toBe(all);
  });

  it('SCOPES_FILE is read again, too, though its name stays (CONFIG-9)', async () => {
    const file = join(directory, 'scopes.json');
    const scope = (name: string) => ({ name, description: name, category: 'Reports' });
    const granted = async (name: string) => {
      const { status } = await admin.post('/personal-access-tokens', { name: 'x', scopes: [name] });
      return status === 201;
    };
    writeFileSync(file, JSON.stringify([scope('report:read')]));
    await reload({ SCOPES_FILE: file });
    expect([await granted('report:read'), await granted('report:write')]).toEqual([true, false]);
    writeFileSync(file, JSON.stringify([scope('report:write')]));
    expect([await granted('report:read'), await granted('report:write')]).toEqual([true, false]);
    await reload({});
    expect([await granted('report:read'), await granted('report:write')]).toEqual([false, true]);
    await reload({ SCOPES_FILE: '' });
    expect(await granted('report:write')).toBe(false);
  });

  it('services sign with the new SCOPED_JWT_SECRET, or with none; registered ones go on (SERVICE-14)', async () => {
    const secret = app.environment['SCOPED_JWT_SECRET'] ?? '';
    const other = 'another-of-the-services-words-4712';
    const client = await admin.post('/service-clients', { name: 'relay', scopes: ['FETCH_CONFIG'] });
    const { clientId: client_id, clientSecret: client_secret } = client.body;
    const grant = { grant_type: 'client_credentials', client_id, client_secret };
    const registered = app.with((await app.anonymous.post('/oauth2/token', grant)).body.access_token);
    const again = async (value: string) => {
      app.environment['SCOPED_JWT_SECRET'] = value;
      return (await registered.post('/users/updateAppConfig')).status;
    };
    expect([await signedWith(secret), await signedWith(other)]).toEqual([200, 401]);
    expect(await again(other)).toBe(200);
    expect([await signedWith(secret), await signedWith(other)]).toEqual([401, 200]);
    expect(await again('')).toBe(200);
    expect([await signedWith(secret), await signedWith(other)]).toEqual([401, 401]);
    expect(await again(secret)).toBe(200);
    expect([await signedWith(secret), await signedWith(other)]).toEqual([200, 401]);
  });

  it('RATE_LIMIT holds, and holds no longer (CONFIG-14)', async () => {
    const wrong = async () =>
      (await attemptSignIn(app, { email: 'nobody@example.com', password: 'Wrong-Horse-7' })).status;
    const tries = async () => {
      const statuses: number[] = [];
      for (let count = 0; count < 6; count += 1) statuses.push(await wrong());
      return new Set(statuses);
    };
    expect(await tries()).toEqual(new Set([401]));
    await reload({ RATE_LIMIT: 'on' });
    expect(await tries()).toEqual(new Set([401, 429]));
    await reload({ RATE_LIMIT: 'off' });
    expect(await tries()).toEqual(new Set([401]));
  });

  it('TRUST_PROXY decides whose word counts for where a request comes from (CONFIG-16)', async () => {
    const network = async () => {
      const headers = { 'x-forwarded-for': '203.0.113.9, 10.1.2.3' };
      await admin.post('/personal-access-tokens', { name: 'x' }, { headers });
      return (await app.audit()).at(-1).network;
    };
    expect(await network()).toBe('127.0.0.1');
    await reload({ TRUST_PROXY: '127.0.0.1' });
    expect(await network()).toBe('10.1.2.3');
    await reload({ TRUST_PROXY: '127.0.0.0/8, 10.0.0.0/8' });
    expect(await network()).toBe('203.0.113.9');
    await reload({ TRUST_PROXY: '10.0.0.0/8' });
    expect(await network()).toBe('127.0.0.1');
    await reload({ TRUST_PROXY: '' });
  });

  it('LOG_LEVEL says what is logged (CONFIG-17)', async () => {
    const logged = async () => {
      const before = app.logLines.length;
      await admin.get('/org');
      await app.anonymous.get('/org');
      return app.logLines.slice(before).map((line) => JSON.parse(line).level);
    };
    await reload({ LOG_LEVEL: 'debug' });
    expect(await logged()).toEqual([20, 30]);
    await reload({ LOG_LEVEL: 'info' });
    expect(await logged()).toEqual([30]);
    await reload({ LOG_LEVEL: 'silent' });
    expect(await logged()).toEqual([]);
    await reload({ LOG_LEVEL: '' });
    expect(await logged()).toEqual([30]);
  });

  it('METRICS decides whether the main port shows /metrics (CONFIG-18)', async () => {
    const status = async () => (await app.anonymous.get('//metrics')).status;
    expect(await status()).toBe(404);
    await reload({ METRICS: 'on' });
    expect(await status()).toBe(200);
    await reload({ METRICS: 'off' });
    expect(await status()).toBe(404);
    await reload({ METRICS: '' });
    expect(await status()).toBe(404);
  });

  it('TOKEN_RETENTION_DAYS decides what the next pruning removes (CONFIG-15)', async () => {
    const { tokenId } = await admin.token();
    await admin.delete(`/personal-access-tokens/${tokenId}`);
    app.clock.advance(2 * day);
    admin = await app.signIn(contactEmail);
    expect(await pruneTokens(app.services)).toBe(0);
    await reload({ TOKEN_RETENTION_DAYS: '1' });
    expect(await pruneTokens(app.services)).toBeGreaterThan(0);
    await reload({ TOKEN_RETENTION_DAYS: '' });
  });

  it('CONNECTOR_BACKEND_URL says whom teams are asked of (CONFIG-13)', async () => {
    const list = (name: string) =>
      responding(200, JSON.stringify({ status: 'success', teams: [name] }), ['content-type: application/json']);
    const backends = await Promise.all(['one', 'two'].map((name) => FakeBackend.start(list(name))));
    const teams = async () => {
      await setImmediate();
      return (await admin.get('/teams/user/teams')).body.teams;
    };
    expect(await teams()).toEqual([]);
    for (const [place, { url }] of [...backends.entries(), ...backends.entries()]) {
      await reload({ CONNECTOR_BACKEND_URL: url });
      expect(await teams()).toEqual([['one', 'two'][place]]);
    }
    await reload({ CONNECTOR_BACKEND_URL: '' });
    expect(await teams()).toEqual([]);
    for (const backend of backends) await backend.stop();
  });

  it('SMTP_URL and MAIL_FROM say where mail goes out, and from whom (CONFIG-11, MAIL-9)', async () => {
    const servers = await Promise.all([MailServer.start(), MailServer.start()]);
    const [one, two] = servers;
    const forgot = () => app.anonymous.post('/userAccount/password/forgot', { email: contactEmail });
    const mailed = async (server: MailServer) => {
      for (const each of servers) each.clear();
      await forgot();
      const mail = await server.mailTo(contactEmail);
      return [mail.sender, new URL(linkIn(mail)).origin];
    };
    await reload({ SMTP_URL: one.url });
    expect(await mailed(one)).toEqual(['no-reply@one.example.net', 'https://one.example.net']);
    await reload({ SMTP_URL: two.url, MAIL_FROM: 'hello@example.org', FRONTEND_URL: 'https://two.example.net' });
    expect(await mailed(two)).toEqual(['hello@example.org', 'https://two.example.net']);
    expect(one.mails).toEqual([]);
    await reload({ MAIL_FROM: '', FRONTEND_URL: '' });
    expect(await mailed(two)).toEqual(['no-reply@one.example.net', 'https://one.example.net']);
    await reload({ SMTP_URL: '' });
    expect((await admin.post('/users/bulk/invite', { emails: ['x@example.com'] })).status).toBe(400);
    for (const server of servers) await server.stop();
  });

  it('INVITE_LINKS decides whether invitation links are shown (CONFIG-28)', async () => {
    const { body } = await admin.post('/users', { fullName: 'Hedy Lamarr', email: 'hedy@example.com' });
    const status = async () => (await admin.post(`/users/${body._id}/invite-link`)).status;
    expect(await status()).toBe(201);
    await reload({ INVITE_LINKS: 'off' });
    expect(await status()).toBe(403);
    await reload({ INVITE_LINKS: '' });
    expect(await status()).toBe(201);
  });

  it('OIDC_* say by what provider people sign in (CONFIG-20)', async () => {
    const described = async () => {
      const { issuer, clientId, allowedDomains } = (await admin.get('/settings/oidc')).body;
      return [issuer, clientId, allowedDomains];
    };
    expect(await described()).toEqual([null, null, []]);
    const one = { OIDC_ISSUER: 'https://login.example.net', OIDC_CLIENT_ID: 'one', OIDC_CLIENT_SECRET: 'x' };
    await reload({ ...one, OIDC_ALLOWED_DOMAINS: 'example.net' });
    expect(await described()).toEqual(['https://login.example.net', 'one', ['example.net']]);
    await reload({ OIDC_ISSUER: 'https://two.example.net', OIDC_CLIENT_ID: 'two', OIDC_ALLOWED_DOMAINS: '' });
    expect(await described()).toEqual(['https://two.example.net', 'two', []]);
    await reload({ OIDC_ISSUER: '', OIDC_CLIENT_ID: '', OIDC_CLIENT_SECRET: '' });
    expect(await described()).toEqual([null, null, []]);
  });
});

describe('what a reload leaves alone (CONFIG-25)', () => {
  const key = 'kX9vQ2mZ7pL4wR8tB1nC6yD3sF5gH0jA';

  it('the directory, the signature and the encryption stay, and HOST and PORT are not listened on', async () => {
    const { dataDir, url } = app;
    const token: TokenClient = await admin.token();
    const header = (jwt: string | null) =>
      JSON.parse(Buffer.from((jwt ?? '').replace('one_', '').split('.')[0] ?? '', 'base64url').toString());
    await admin.put('/settings/smtp', {
      host: 'mail.example.net',
      port: 25,
      security: 'none',
      from: 'hello@example.net',
    });
    const before = (await admin.get('/settings/smtp')).body;
    const { encryptionKey } = app.services.config;
    const changed = { HOST: '127.0.0.2', PORT: '1', DATA_DIR: directory, JWT_ALGORITHM: 'HS256', JWT_SECRET: key };
    await reload({ ...changed, ENCRYPTION_KEY: '0123456789abcdef'.repeat(4) });
    expect(app.services.config).toMatchObject({
      host: '127.0.0.1',
      port: 0,
      dataDir,
      jwtSharedSecret: null,
      encryptionKey,
    });
    expect((await fetch(`${url}/health/live`)).status).toBe(200);
    expect((await token.get('/org')).status).toBe(200);
    expect(header((await admin.token()).credential)).toMatchObject({ alg: 'EdDSA', kid: header(token.credential).kid });
    expect((await admin.get('/settings/smtp')).body).toEqual(before);
    expect(before).toMatchObject({ configured: true, source: 'stored', host: 'mail.example.net' });
    await admin.delete('/settings/smtp');
    const listed: Json[] = (await admin.get('/personal-access-tokens')).body.tokens;
    expect(listed.map(({ id }) => id)).toContain(token.tokenId);
  });
});
