import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  basic,
  describable,
  formTo,
  introspect,
  issuedTo,
  type RegisteredService,
  registerService,
} from '../../../test/support/service-clients.ts';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

const path = '/oauth2/revoke';

let app: TestApp;
let admin: Client;
let service: RegisteredService;
let lookUp: string;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
  service = await registerService(admin);
  lookUp = `/users/internal/${admin.userId}`;
});
afterAll(() => app.close());

const revoke = (token: string, by = service) => formTo(app)(path, { token }, basic(by));

describe('POST /oauth2/revoke', () => {
  it('200: a service ends its own token, at once and no other (SERVICE-16, AUTH-27)', async () => {
    const [ended, other] = [await issuedTo(app, service), await issuedTo(app, service)];
    expect((await ended.get(lookUp)).status).toBe(200);
    const { status, body, headers } = await revoke(ended.credential);
    expect([status, body, headers.get('cache-control')]).toEqual([200, {}, 'no-store']);
    expect(await ended.get(lookUp)).toMatchObject({ status: 401, body: { error: { code: 'TOKEN_REVOKED' } } });
    expect((await introspect(app, service, ended.credential)).body).toEqual({ active: false });
    expect((await other.get(lookUp)).status).toBe(200);
    const record = (await app.audit()).at(-1);
    expect(record).toMatchObject({
      action: 'service.token-revoked',
      subject_id: service.clientId,
      actor_user_id: null,
    });
  });

  it.each([
    ['a form, by Basic', (token: string) => formTo(app)(path, { token }, basic(service))],
    [
      'a form alone',
      (token: string) => formTo(app)(path, { token, client_id: service.clientId, client_secret: service.clientSecret }),
    ],
    ['JSON, by Basic', (token: string) => app.anonymous.post(path, { token }, { headers: basic(service) })],
    [
      'JSON alone',
      (token: string) =>
        app.anonymous.post(path, { token, client_id: service.clientId, client_secret: service.clientSecret }),
    ],
    [
      'a hint that is wrong',
      (token: string) => formTo(app)(path, { token, token_type_hint: 'refresh_token' }, basic(service)),
    ],
  ])('200: asked by %s (SERVICE-16, SERVICE-17)', async (_, ask) => {
    const holder = await issuedTo(app, service);
    expect((await ask(holder.credential)).status).toBe(200);
    expect((await holder.get(lookUp)).status).toBe(401);
  });

  it('200: the same for whatever is no live token of the service, and nothing of it ends (SERVICE-16)', async () => {
    const theirs = await issuedTo(app, await registerService(admin));
    const token = await admin.token();
    const self = app.service();
    const gone = await issuedTo(app, service);
    await revoke(gone.credential);
    const { body: pair } = await app.signInTokens('ada@example.com');
    const records = (await app.audit()).length;
    const values = [theirs.credential, token.credential, admin.credential, self.credential, pair.refreshToken];
    for (const value of [...values, gone.credential, 'unknown', '..', 'a b', '\u20ac', 'x'.repeat(10_000)]) {
      const { status, text } = await revoke(value ?? '');
      expect([status, text]).toEqual([200, '{}']);
    }
    expect((await app.audit()).length).toBe(records);
    expect((await theirs.get(lookUp)).status).toBe(200);
    expect((await self.get(lookUp)).status).toBe(200);
    expect((await token.get('/org')).status).toBe(200);
    expect((await admin.get('/org')).status).toBe(200);
    expect((await app.with(pair.refreshToken).post('/userAccount/refresh/token')).status).toBe(200);
  });

  it('200: revoking does not count as use of a service (SERVICE-9)', async () => {
    const unused = await registerService(admin);
    await revoke('x', unused);
    const { clients } = (await admin.get('/service-clients')).body;
    expect(clients.at(-1)).toMatchObject({ clientId: unused.clientId, lastUsedAt: null });
  });

  it('400: without a token, with an empty or too long one, or with two (SERVICE-16, ERR-5)', async () => {
    for (const fields of ['', 'token=', `token=${'x'.repeat(10_001)}`, 'token=a&token=b', 'Token=a']) {
      const { status, body } = await formTo(app)(path, fields, basic(service));
      expect([status, body.error]).toEqual([400, 'invalid_request']);
      expect(body.error_description).toMatch(describable);
    }
  });

  it('401: who does not prove to be a service; the token lives on (SERVICE-17)', async () => {
    const holder = await issuedTo(app, service);
    const token = holder.credential;
    const wrong = [
      formTo(app)(path, { token }),
      formTo(app)(path, { token }, basic({ ...service, clientSecret: 'wrong' })),
      formTo(app)(path, { token }, { authorization: `Bearer ${token}` }),
      formTo(app)(path, { token, client_id: service.clientId }),
      app.with(admin.credential).post(path, { token }),
    ];
    for (const { status, body, headers } of await Promise.all(wrong)) {
      expect([status, body.error, headers.get('www-authenticate')]).toEqual([
        401,
        'invalid_client',
        'Basic realm="latchkey"',
      ]);
    }
    expect((await holder.get(lookUp)).status).toBe(200);
  });
});
