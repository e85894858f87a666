import { createLocalJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { day, second } from '../../src/base/clock.ts';
import { bareJwt, claimsOf, headerOf } from '../support/jwt.ts';
import { type Client, organization, TestApp, type TokenClient } from '../support/test-app.ts';

const sharedSecret = 'kM3vX8qLz1RtY6wB0nHs4GjP7dFuC2eA';

describe('tokens as JWTs', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start({ BASE_URL: 'https://id.example.com/' });
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  it('carry exactly the documented claims (PAT-27, PAT-28)', async () => {
    const scopes = ['org:read', 'token:read'];
    const token = await admin.token({ scopes, expiryDays: 90 });
    const { orgId } = claimsOf(admin.credential ?? '');
    expect(claimsOf(token.credential ?? '')).toEqual({
      userId: admin.userId,
      orgId,
      fullName: organization.adminFullName,
      scope: 'org:read token:read',
      client_id: `pat-system:${String(orgId)}`,
      tokenType: 'oauth',
      jti: token.tokenId,
      rnd: expect.stringMatching(/^[\w-]{22}$/),
      iat: Math.floor(app.clock.now() / second),
      exp: Math.floor((app.clock.now() + 90 * day) / second),
      iss: 'https://id.example.com',
    });
  });

  it('have no exp when they never expire (PAT-27)', async () => {
    const token = await admin.token({ expiryDays: 'never' });
    expect(Object.keys(claimsOf(token.credential ?? '')).sort()).toEqual(
      ['client_id', 'fullName', 'iat', 'iss', 'jti', 'orgId', 'rnd', 'scope', 'tokenType', 'userId'].sort(),
    );
  });

  it('of sessions carry exactly the documented claims (AUTH-13)', () => {
    const claims = claimsOf(admin.credential ?? '');
    expect(claims).toEqual({
      userId: admin.userId,
      orgId: expect.stringMatching(/^[a-f0-9]{24}$/),
      email: organization.contactEmail,
      fullName: organization.adminFullName,
      accountType: 'business',
      jti: expect.stringMatching(/^[a-f0-9]{24}$/),
      rnd: expect.stringMatching(/^[\w-]{22}$/),
      iat: Math.floor(app.clock.now() / second),
      exp: Math.floor(app.clock.now() / second) + day / second,
      iss: 'https://id.example.com',
      tokenType: 'session',
    });
  });

  it('are verified by anyone with the published keys (AUTH-34, AUTH-35)', async () => {
    const token = await admin.token();
    const { status, body } = await app.anonymous.get('//.well-known/jwks.json');
    expect(status).toBe(200);
    for (const credential of [token.credential, admin.credential]) {
      const jwt = bareJwt(credential ?? '');
      const options = { algorithms: ['EdDSA'], currentDate: new Date(app.clock.now()) };
      const { payload, protectedHeader } = await jwtVerify(jwt, createLocalJWKSet(body), options);
      expect(payload).toEqual(claimsOf(jwt));
      expect(protectedHeader).toEqual({ alg: 'EdDSA', typ: 'JWT', kid: body.keys[0].kid });
      const altered = jwt.replace(/\.(.)/, (_, first: string) => `.${first === 'e' ? 'f' : 'e'}`);
      await expect(jwtVerify(altered, createLocalJWKSet(body), options)).rejects.toThrow(
        'signature verification failed',
      );
    }
    expect(Object.keys(body.keys[0]).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x']);
  });

  it('keep to their owner’s present state in the store, whatever their claims say (AUTH-29)', async () => {
    const member = await app.member(admin, 'grace@example.com');
    const token = await member.token();
    await app.services.db.transaction((tx) =>
      tx.updateTable('users').set({ full_name: 'Rear Admiral Hopper' }).where('id', '=', member.userId).execute(),
    );
    const again = await token.token();
    expect(claimsOf(token.credential ?? '')['fullName']).toBe('Grace Hopper');
    expect(claimsOf(again.credential ?? '')['fullName']).toBe('Rear Admiral Hopper');
  });
});

describe('tokens signed with a shared secret', () => {
  it('are verified with it, and no keys are published (AUTH-37)', async () => {
    const app = await TestApp.start({ JWT_ALGORITHM: 'HS256', JWT_SECRET: sharedSecret });
    const admin = await app.setUp();
    const token = await admin.token({ expiryDays: 'never' });
    const jwt = bareJwt(token.credential ?? '');
    expect(headerOf(jwt)).toEqual({ alg: 'HS256', typ: 'JWT' });
    const options = { algorithms: ['HS256'], currentDate: new Date(app.clock.now()) };
    const { payload } = await jwtVerify(jwt, new TextEncoder().encode(sharedSecret), options);
    expect(payload).toMatchObject({ jti: token.tokenId, tokenType: 'oauth' });
    expect((await app.anonymous.get('//.well-known/jwks.json')).body).toEqual({ keys: [] });
    expect((await token.get('/org')).status).toBe(200);
    await app.close();
  });
});

describe('tokens over restarts', () => {
  it('survive one with another BASE_URL, another way of signing and other keys: the store decides (AUTH-31, AUTH-25)', async () => {
    const first = await TestApp.start({ BASE_URL: 'https://old.example.com' });
    const admin = await first.setUp();
    const token: TokenClient = await admin.token();
    await first.stop();
    const settings = [
      { BASE_URL: 'https://new.example.com' },
      { BASE_URL: 'http://10.0.0.7:8080', JWT_ALGORITHM: 'HS256', JWT_SECRET: sharedSecret },
      {},
    ];
    for (const environment of settings) {
      const app = await TestApp.start({ ...environment, DATA_DIR: first.dataDir });
      for (const { credential } of [admin, token]) expect((await app.with(credential).get('/org')).status).toBe(200);
      const { status, body } = await app.with(token.credential).post('/personal-access-tokens', { name: 'x' });
      expect(status).toBe(201);
      expect(claimsOf(body.token.accessToken)['iss']).toBe(environment.BASE_URL ?? 'http://localhost:0');
      await app.stop();
    }
    await first.close();
  });
});
