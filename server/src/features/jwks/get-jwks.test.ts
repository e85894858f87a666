import { exportJWK, generateKeyPair, importJWK, jwtVerify } from 'jose';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { attemptSignIn, beginSignIn } from '../../../test/support/sign-in.ts';
import { readSigningKeys, writeSigningKeys } from '../../../test/support/stored-keys.ts';
import { password, TestApp } from '../../../test/support/test-app.ts';

const path = '//.well-known/jwks.json';
const email = 'ada@example.com';

describe('GET /.well-known/jwks.json', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await TestApp.start();
  });
  afterEach(() => app.close());

  it('200: the public half of one Ed25519 key, for anyone (AUTH-34, AUTH-35, HTTP-7)', async () => {
    const { status, body } = await app.anonymous.get(path);
    expect(status).toBe(200);
    expect(body).toEqual({
      keys: [
        {
          kty: 'OKP',
          crv: 'Ed25519',
          x: expect.stringMatching(/^[\w-]{43}$/),
          kid: expect.stringMatching(/^[0-9a-f-]{36}$/),
          alg: 'EdDSA',
          use: 'sig',
        },
      ],
    });
    const stored = await readSigningKeys(app);
    expect(JSON.stringify(body)).not.toContain(stored.keys[0].d);
  });

  it('200: it verifies sessions and personal access tokens (AUTH-2, AUTH-34)', async () => {
    const admin = await app.setUp();
    const token = await admin.token();
    const [jwk] = (await app.anonymous.get(path)).body.keys;
    const key = await importJWK(jwk, 'EdDSA');
    for (const jwt of [admin.credential, token.credential?.replace('lkpat_', '')]) {
      const { protectedHeader } = await jwtVerify(jwt ?? '', key, { currentDate: new Date(app.clock.now()) });
      expect(protectedHeader).toEqual({ alg: 'EdDSA', typ: 'JWT', kid: jwk.kid });
    }
  });

  it('200: after a rotation the earlier key is still there and still verifies (AUTH-38)', async () => {
    await app.setUp();
    const begun = await beginSignIn(app, email);
    const [earlier] = (await app.anonymous.get(path)).body.keys;
    await app.stop();
    const stored = await readSigningKeys(app);
    const { privateKey } = await generateKeyPair('Ed25519', { extractable: true });
    const keys = [{ ...(await exportJWK(privateKey)), kid: 'the-next-one' }, ...stored.keys];
    await writeSigningKeys(app, { keys });

    const rotated = await TestApp.start({ DATA_DIR: app.dataDir }, app.clock);
    try {
      const { body } = await rotated.anonymous.get(path);
      expect(body.keys.map(({ kid }: { kid: string }) => kid)).toEqual(['the-next-one', earlier.kid]);
      const attempt = { method: 'password', credentials: { password } };
      const headers = { 'x-session-token': begun };
      expect((await rotated.anonymous.post('/userAccount/authenticate', attempt, { headers })).status).toBe(200);
      const { body: pair } = await attemptSignIn(rotated, { email, password });
      const { protectedHeader } = await jwtVerify(pair.accessToken, await importJWK(body.keys[0], 'EdDSA'), {
        currentDate: new Date(app.clock.now()),
      });
      expect(protectedHeader.kid).toBe('the-next-one');
    } finally {
      await rotated.stop();
    }
  });
});

describe('GET /.well-known/jwks.json with a shared secret', () => {
  it('200: no key, and tokens verify with the secret (AUTH-37)', async () => {
    const secret = 'kX9vQ2mZ7pL4wR8tB1nC6yD3sF5gH0jA';
    const app = await TestApp.start({ JWT_ALGORITHM: 'HS256', JWT_SECRET: secret });
    try {
      const admin = await app.setUp();
      expect((await app.anonymous.get(path)).body).toEqual({ keys: [] });
      const options = { algorithms: ['HS256'], currentDate: new Date(app.clock.now()) };
      const { payload } = await jwtVerify(admin.credential ?? '', Buffer.from(secret), options);
      expect(payload['userId']).toBe(admin.userId);
      expect((await admin.get('/org')).status).toBe(200);
    } finally {
      await app.close();
    }
  });
});
