import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimsOf } from '../../../test/support/jwt.ts';
import { storedRows } from '../../../test/support/second-connection.ts';
import {
  askToken,
  basic,
  describable,
  formTo,
  issuedTo,
  type RegisteredService,
  registerService,
} from '../../../test/support/service-clients.ts';
import { type Client, TestApp } from '../../../test/support/test-app.ts';
import { TestClock } from '../../../test/support/test-clock.ts';
import { hashCredential } from '../../base/secret.ts';

const path = '/oauth2/token';
const all = ['USER_LOOKUP', 'FETCH_CONFIG', 'EVENTS_READ', 'TOKEN_INTROSPECT'];
const grant = { grant_type: 'client_credentials' };

let app: TestApp;
let admin: Client;
let service: RegisteredService;
let lookUp: string;

beforeAll(async () => {
  app = await TestApp.start({ BASE_URL: 'https://id.example.com' });
  admin = await app.setUp();
  service = await registerService(admin, all);
  lookUp = `/users/internal/${admin.userId}`;
});
afterAll(() => app.close());

const inBody = () => ({ client_id: service.clientId, client_secret: service.clientSecret });

describe('POST /oauth2/token', () => {
  it('200: a token of all that the service may do, for an hour, kept nowhere (SERVICE-11, SERVICE-12)', async () => {
    const { status, body, headers } = await askToken(app, service);
    expect(status).toBe(200);
    const expected = { token_type: 'Bearer', expires_in: 3_600, scope: all.join(' ') };
    expect(body).toEqual({ access_token: expect.stringMatching(/^eyJ[\w-]+\.[\w-]+\.[\w-]+$/), ...expected });
    expect([headers.get('cache-control'), headers.get('content-type')]).toEqual([
      'no-store',
      'application/json; charset=utf-8',
    ]);
    const holder = app.with(body.access_token);
    expect((await holder.get(lookUp)).status).toBe(200);
    expect((await holder.get('/userAccount/internal/password/check')).status).toBe(200);
    expect((await holder.get('/org')).status).toBe(401);
  });

  it.each([
    ['a form, by Basic', () => formTo(app)(path, grant, basic(service))],
    [
      'a form, by Basic, the id named again in upper case',
      () => formTo(app)(path, { ...grant, client_id: service.clientId.toUpperCase() }, basic(service)),
    ],
    ['a form alone', () => formTo(app)(path, { ...grant, ...inBody() })],
    ['JSON, by Basic', () => app.anonymous.post(path, grant, { headers: basic(service) })],
    ['JSON alone', () => app.anonymous.post(path, { ...grant, ...inBody() })],
    [
      'a form that says another charset, which means nothing there',
      () =>
        formTo(app)(path, grant, {
          ...basic(service),
          'content-type': 'application/x-www-form-urlencoded; charset=ISO-8859-1',
        }),
    ],
    [
      'a form with fields that nobody knows',
      () => formTo(app)(path, { ...grant, resource: 'x', hint: '' }, basic(service)),
    ],
    ['the id in upper case', () => askToken(app, { ...service, clientId: service.clientId.toUpperCase() })],
    [
      'the scheme in other letters, with two spaces',
      () =>
        formTo(app)(path, grant, {
          authorization: (basic(service)['authorization'] ?? '').replace('Basic ', 'bAsIc  '),
        }),
    ],
    [
      'fields without a value, which are none',
      () => formTo(app)(path, 'grant_type=client_credentials&audience=&client_secret=&&', basic(service)),
    ],
  ])('200: asked by %s (SERVICE-11, SERVICE-17)', async (_, ask) => {
    const { status, body } = await ask();
    expect([status, body.scope]).toEqual([200, all.join(' ')]);
  });

  it('200: Basic whose parts are percent-encoded to the last letter (SERVICE-17)', async () => {
    const encoded = (text: string) =>
      [...text].map((letter) => `%${letter.charCodeAt(0).toString(16).padStart(2, '0')}`).join('');
    const pair = `${encoded(service.clientId)}:${encoded(service.clientSecret)}`;
    const headers = { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
    expect((await formTo(app)(path, grant, headers)).status).toBe(200);
  });

  it.each([
    ['one', 'USER_LOOKUP', 'USER_LOOKUP'],
    ['two, in their order', 'FETCH_CONFIG USER_LOOKUP', 'FETCH_CONFIG USER_LOOKUP'],
    ['second spellings', 'user:lookup fetch:config', 'USER_LOOKUP FETCH_CONFIG'],
    ['one in both spellings', 'user:lookup USER_LOOKUP USER_LOOKUP', 'USER_LOOKUP'],
    ['spaces around', '  USER_LOOKUP  ', 'USER_LOOKUP'],
  ])('200: scope: %s (SERVICE-11, SERVICE-13)', async (_, scope, granted) => {
    const { status, body } = await askToken(app, service, { scope });
    expect([status, body.scope, claimsOf(body.access_token)['scopes']]).toEqual([200, granted, granted.split(' ')]);
  });

  it('200: fewer scopes than the service has are all that the token is valid for (SERVICE-3, SERVICE-11)', async () => {
    const holder = await issuedTo(app, service, { scope: 'FETCH_CONFIG' });
    expect((await holder.get('/userAccount/internal/password/check')).status).toBe(200);
    const { status, body } = await holder.get(lookUp);
    expect([status, body.error.code]).toEqual([403, 'INSUFFICIENT_SCOPE']);
  });

  it.each([
    ['one that the service lacks', 'USER_LOOKUP FETCH_CONFIG'],
    ['a second spelling of one that it lacks', 'fetch:config'],
    ['an unknown one', 'USER_LOOKUP ADMIN'],
    ['one of people', 'user:read'],
    ['other letters', 'user_lookup'],
    ['a tab between', 'USER_LOOKUP\tUSER_LOOKUP'],
    ['a name that every object has', 'constructor'],
    ['a quotation mark', '"USER_LOOKUP"'],
    ['nothing', ''],
    ['spaces alone', '   '],
  ])('400 invalid_scope: %s (SERVICE-11, ERR-5)', async (_, scope) => {
    const narrow = await registerService(admin, ['USER_LOOKUP']);
    const { status, body } = await askToken(app, narrow, { scope });
    expect([status, body]).toEqual([
      400,
      { error: 'invalid_scope', error_description: 'This client may have: USER_LOOKUP' },
    ]);
  });

  it.each([
    ['scopes', 'scope'],
    ['Scope', 'scope'],
    ['SCOPES', 'scope'],
    ['scope[]', 'scope'],
    ['scop', 'scope'],
    ['scpoe', 'scope'],
    ['clientSecret', 'client_secret'],
  ])('400 invalid_request: %s, which was meant to be %s, as a form and as JSON (SERVICE-20)', async (name, meant) => {
    const expected = { error: 'invalid_request', error_description: expect.stringContaining(`did you mean ${meant}?`) };
    const fields = { ...grant, [name]: 'EVENTS_READ' };
    const asJson = () => app.anonymous.post(path, fields, { headers: basic(service) });
    for (const response of [await formTo(app)(path, fields, basic(service)), await asJson()]) {
      expect([response.status, response.body]).toEqual([400, expected]);
      expect(response.body.error_description).toMatch(describable);
    }
  });

  it('400 invalid_scope: a scope without a value, and its other spellings without one (SERVICE-20)', async () => {
    const bodyOf = async (more: string) =>
      (await formTo(app)(path, `grant_type=client_credentials&${more}`, basic(service))).body.error;
    expect([await bodyOf('scope='), await bodyOf('scope'), await bodyOf('scope=+')]).toEqual(
      Array.from({ length: 3 }, () => 'invalid_scope'),
    );
    expect([await bodyOf('scopes='), await bodyOf('Scope=')]).toEqual(['invalid_request', 'invalid_request']);
  });

  it('200: fields of other standards are ignored (SERVICE-20, RFC 6749)', async () => {
    const names =
      'resource audience assertion client_assertion client_assertion_type code code_verifier redirect_uri username password refresh_token state nonce subject_token actor_token requested_token_type response_type token_type_hint';
    const others = Object.fromEntries(names.split(' ').map((name) => [name, 'EVENTS_READ']));
    const { status, body } = await formTo(app)(path, { ...grant, ...others, scope: 'USER_LOOKUP' }, basic(service));
    expect([status, body.scope]).toEqual([200, 'USER_LOOKUP']);
  });

  it.each([
    ['authorization_code', 'unsupported_grant_type'],
    ['password', 'unsupported_grant_type'],
    ['refresh_token', 'unsupported_grant_type'],
    ['Client_Credentials', 'unsupported_grant_type'],
    ['client_credentials ', 'unsupported_grant_type'],
    ['', 'invalid_request'],
    [null, 'invalid_request'],
    ['x'.repeat(101), 'invalid_request'],
  ])('400: grant_type %j is %s (SERVICE-11, ERR-5)', async (type, error) => {
    const fields: Record<string, string> = type === null ? {} : { grant_type: type };
    const { status, body } = await formTo(app)(path, { ...fields, scope: 'USER_LOOKUP' }, basic(service));
    expect([status, body.error]).toEqual([400, error]);
    expect(body.error_description).toMatch(describable);
  });

  it('400: who names the client twice, whether or not alike (SERVICE-17, ERR-5)', async () => {
    const other = await registerService(admin);
    const bodies = [
      inBody(),
      { client_secret: service.clientSecret },
      { client_secret: 'wrong' },
      { client_id: other.clientId },
      { client_id: other.clientId, client_secret: other.clientSecret },
    ];
    for (const more of bodies) {
      const { status, body } = await formTo(app)(path, { ...grant, ...more }, basic(service));
      expect([status, body.error]).toEqual([400, 'invalid_request']);
      expect(body.error_description).toBe('Name the client once: by HTTP Basic, or in the body');
    }
  });

  it('401: wrong in whatever way, one and the same answer (SERVICE-17, ERR-5)', async () => {
    const gone = await registerService(admin);
    await admin.delete(`/service-clients/${gone.clientId}`);
    const other = await registerService(admin);
    const { clientId, clientSecret } = service;
    const authorize = (value: string) => formTo(app)(path, grant, { authorization: value });
    const pair = (text: string) => authorize(`Basic ${Buffer.from(text).toString('base64')}`);
    const responses = await Promise.all([
      askToken(app, { clientId, clientSecret: 'wrong' }),
      askToken(app, { clientId, clientSecret: '' }),
      askToken(app, { clientId, clientSecret: clientSecret.toUpperCase() }),
      askToken(app, { clientId, clientSecret: `${clientSecret} ` }),
      askToken(app, { clientId, clientSecret: clientSecret.slice(0, -1) }),
      askToken(app, { clientId, clientSecret: hashCredential(clientSecret) }),
      askToken(app, { clientId, clientSecret: other.clientSecret }),
      askToken(app, { clientId: 'f'.repeat(24), clientSecret }),
      askToken(app, { clientId: 'f'.repeat(24), clientSecret: '' }),
      askToken(app, { clientId: '', clientSecret: '' }),
      askToken(app, { clientId: 'constructor', clientSecret }),
      askToken(app, { clientId: "' OR 1=1 --", clientSecret }),
      askToken(app, { clientId: `${clientId}\0`, clientSecret }),
      askToken(app, gone),
      pair(`${clientId}${clientSecret}`),
      pair(`%zz:${clientSecret}`),
      pair(`${clientId}:%E0%A4%A`),
      authorize('Basic'),
      authorize('Basic '),
      authorize('Basic ***'),
      authorize(`Basic ${clientSecret}`),
      authorize(clientSecret),
      formTo(app)(path, grant),
      formTo(app)(path, { ...grant, client_id: clientId }),
      formTo(app)(path, { ...grant, client_secret: clientSecret }),
      formTo(app)(path, { ...grant, client_id: clientId, client_secret: 'wrong' }),
      formTo(app)(path, { ...grant, client_id: clientSecret, client_secret: clientId }),
      app.anonymous.post(path, { ...grant, client_id: clientId, client_secret: 'wrong' }),
      formTo(app)(`${path}?client_id=${clientId}&client_secret=${clientSecret}`, grant),
    ]);
    const told = responses.map(({ status, text, headers }) => {
      return JSON.stringify([status, text, headers.get('www-authenticate'), headers.get('cache-control')]);
    });
    const body = '{"error":"invalid_client","error_description":"The client is unknown, or its secret is wrong"}';
    expect([...new Set(told)]).toEqual([JSON.stringify([401, body, 'Basic realm="latchkey"', 'no-store'])]);
  });

  it('405: every other method, which issues nothing (ERR-19)', async () => {
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) {
      const options = method === 'GET' ? {} : { body: grant };
      const { status, headers } = await app.anonymous.call(method, path, { headers: basic(service), ...options });
      expect([method, status, headers.get('allow')]).toEqual([method, 405, 'POST']);
    }
  });
});

describe('a scoped token that was issued', () => {
  it('is a JWT of ours, whose claims say what it is (SERVICE-11, AUTH-35, CRED-1)', async () => {
    const { credential } = await issuedTo(app, service, { scope: 'USER_LOOKUP EVENTS_READ' });
    const keys = createLocalJWKSet((await app.anonymous.get('//.well-known/jwks.json')).body);
    const { payload, protectedHeader } = await jwtVerify(credential, keys, { currentDate: new Date(app.clock.now()) });
    const iat = Math.floor(app.clock.now() / 1_000);
    expect(protectedHeader).toMatchObject({ alg: 'EdDSA', typ: 'JWT' });
    expect(payload).toEqual({
      client_id: service.clientId,
      sub: service.clientId,
      scope: 'USER_LOOKUP EVENTS_READ',
      scopes: ['USER_LOOKUP', 'EVENTS_READ'],
      iss: 'https://id.example.com',
      iat,
      exp: iat + 3_600,
      jti: expect.stringMatching(/^[0-9a-f]{24}$/),
      rnd: expect.stringMatching(/^[\w-]{22}$/),
      tokenType: 'scoped',
    });
  });

  it('no two are alike, even of one moment (SERVICE-12)', async () => {
    const made = await Promise.all(Array.from({ length: 20 }, () => issuedTo(app, service)));
    expect(new Set(made.map(({ credential }) => credential)).size).toBe(20);
  });

  it('401 TOKEN_EXPIRED an hour after its second began, to the millisecond (SERVICE-12)', async () => {
    const clock = new TestClock();
    const own = await TestApp.start({}, clock);
    const owner = await own.setUp();
    const { _id: userId } = (await owner.get(`/users/${owner.userId}`)).body;
    const beganMs = Math.floor(clock.now() / 1_000) * 1_000;
    const holder = await issuedTo(own, await registerService(owner));
    clock.set(beganMs + 3_600_000 - 1);
    expect((await holder.get(`/users/internal/${userId}`)).status).toBe(200);
    clock.set(beganMs + 3_600_000);
    const late = await holder.get(`/users/internal/${userId}`);
    expect([late.status, late.body.error.code]).toEqual([401, 'TOKEN_EXPIRED']);
    await own.close();
  });

  it('is kept by its hash only, and stands in no log or audit record, nor does the secret (STORE-8, SERVICE-12)', async () => {
    const { credential } = await issuedTo(app, service);
    await formTo(app)(path, { ...grant, ...inBody() });
    expect((await app.audit()).at(-1)).toMatchObject({
      action: 'service.token-issued',
      subject_id: service.clientId,
      actor_user_id: null,
      details: { scope: all.join(' ') },
    });
    expect(storedRows(app)['service_tokens']?.map(({ hash }) => hash)).toContain(hashCredential(credential));
    const secrets = [
      credential,
      credential.split('.')[2] ?? '',
      service.clientSecret,
      basic(service)['authorization'] ?? '',
    ];
    const files = readdirSync(app.dataDir).map((name) => readFileSync(join(app.dataDir, name), 'latin1'));
    for (const place of [...files, app.logLines.join('\n'), JSON.stringify(await app.audit())]) {
      for (const secret of secrets) expect(place.includes(secret)).toBe(false);
    }
  });

  it('is good by the store’s word alone: a row less, and it is 401 (AUTH-25, AUTH-26)', async () => {
    const holder = await issuedTo(app, service);
    expect((await holder.get(lookUp)).status).toBe(200);
    const hash = hashCredential(holder.credential);
    await app.services.db.transaction((tx) => tx.deleteFrom('service_tokens').where('hash', '=', hash).execute());
    expect(await holder.get(lookUp)).toMatchObject({ status: 401, body: { error: { code: 'TOKEN_INVALID' } } });
    const { exp: _, ...claims } = claimsOf(holder.credential);
    const forged = await app.services.keys.sign({ ...claims, exp: 4_102_444_800 });
    expect((await app.with(forged.expose()).get(lookUp)).status).toBe(401);
  });

  it('works after DELETE /org and a restart, and so does the service that got it (SERVICE-11, AUTH-31)', async () => {
    const first = await TestApp.start();
    const owner = await first.setUp();
    const known = await registerService(owner);
    const holder = await issuedTo(first, known);
    await first.deleteOrganization();
    const route = '/events';
    expect((await owner.get('/org')).status).toBe(401);
    expect((await holder.get(route)).status).toBe(200);
    expect((await askToken(first, known)).status).toBe(200);
    await first.stop();
    const second = await TestApp.start({ DATA_DIR: first.dataDir, BASE_URL: 'https://other.example.com' }, first.clock);
    expect((await second.with(holder.credential).get(route)).status).toBe(200);
    expect((await askToken(second, known)).status).toBe(200);
    await second.close();
  });
});
