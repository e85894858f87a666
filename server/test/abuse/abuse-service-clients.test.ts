import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tries } from '../support/effort.ts';
import { storedRows } from '../support/second-connection.ts';
import {
  askToken,
  basic,
  describable,
  formTo,
  introspect,
  issuedTo,
  type RegisteredService,
  registerService,
} from '../support/service-clients.ts';
import { type Client, type Json, TestApp, type TestResponse } from '../support/test-app.ts';

const perMinute = 300;
const countOf = (responses: readonly TestResponse[], status: number) =>
  responses.filter((one) => one.status === status).length;

/** Makes many calls, ten at a time. */
async function calls(count: number, call: () => Promise<TestResponse>): Promise<TestResponse[]> {
  const responses: TestResponse[] = [];
  let begun = 0;
  const worker = async () => {
    while (begun < count) {
      begun += 1;
      responses.push(await call());
    }
  };
  await Promise.all(Array.from({ length: 10 }, worker));
  return responses;
}

function expectLimited({ status, body, headers }: TestResponse): void {
  expect([status, body.error, Object.keys(body).length]).toEqual([429, 'temporarily_unavailable', 2]);
  expect(body.error_description).toMatch(describable);
  expect(headers.get('retry-after')).toBe('60');
  expect([headers.get('ratelimit-limit'), headers.get('ratelimit-remaining')]).toEqual([String(perMinute), '0']);
}

describe('limits of services (ERR-24)', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start({ RATE_LIMIT: 'on' });
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  it('200 for exactly 300 tokens of one service in a minute, then 429 for it alone (SERVICE-11, ERR-5)', async () => {
    const [busy, other] = [await registerService(admin), await registerService(admin)];
    expect(countOf(await calls(perMinute, () => askToken(app, busy)), 200)).toBe(perMinute);
    const beyond = await calls(10, () => askToken(app, busy));
    expect(countOf(beyond, 429)).toBe(10);
    for (const response of beyond) expectLimited(response);
    expect((await askToken(app, other)).status).toBe(200);
    // Its tokens stay valid, and it can revoke them.
    expect((await introspect(app, busy, 'x')).status).toBe(200);
    app.clock.advance(59_999);
    expect((await askToken(app, busy)).status).toBe(429);
    app.clock.advance(1);
    expect((await askToken(app, busy)).status).toBe(200);
  });

  it('401 for exactly 300 wrong secrets of one network, then 429; the right one goes on (SERVICE-17, ERR-5)', async () => {
    app.clock.advance(60_000);
    const service = await registerService(admin);
    const wrong = { ...service, clientSecret: 'wrong' };
    const tries = [
      () => askToken(app, wrong),
      () => introspect(app, wrong, 'x'),
      () => formTo(app)('/oauth2/revoke', { token: 'x' }, basic(wrong)),
    ];
    for (const attempt of tries) expect(countOf(await calls(perMinute / 3, attempt), 401)).toBe(perMinute / 3);
    for (const attempt of tries) expectLimited(await attempt());
    expect((await askToken(app, service)).status).toBe(200);
    expect((await introspect(app, service, 'x')).body).toEqual({ active: false });
    // Inactive tokens are no bad credentials of the service that introspects them.
    expect(countOf(await calls(20, () => introspect(app, service, 'x')), 200)).toBe(20);
  });
});

describe('random requests to OAuth endpoints', () => {
  let app: TestApp;
  let admin: Client;
  let service: RegisteredService;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    service = await registerService(admin, ['USER_LOOKUP', 'TOKEN_INTROSPECT']);
  });
  afterAll(() => app.close());

  const issuedCount = () => storedRows(app)['service_tokens']?.length;
  const path = fc.constantFrom('/oauth2/token', '/oauth2/introspect', '/oauth2/revoke');
  const name = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom('grant_type', 'client_id', 'client_secret', 'scope', 'token') },
    { weight: 1, arbitrary: fc.constantFrom('__proto__', 'constructor', 'Client_Id', 'client_secret[]', '') },
    { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 10 }) },
  );
  const value = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom('client_credentials', 'USER_LOOKUP', 'user:lookup', 'ADMIN', '', ' ') },
    { weight: 2, arbitrary: fc.constantFrom('THE_ID', 'the_id', 'THE_TOKEN') },
    { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 30 }) },
  );
  const fields = fc.array(fc.tuple(name, value), { maxLength: 8 });
  const type = fc.constantFrom(
    'application/x-www-form-urlencoded',
    'application/x-www-form-urlencoded; charset=x',
    'application/json',
    'text/plain',
  );
  const authorization = fc.oneof(
    fc.constant(undefined),
    fc.string({ unit: 'grapheme-ascii', maxLength: 40 }).map((text) => `Basic ${Buffer.from(text).toString('base64')}`),
    fc.string({ unit: 'grapheme-ascii', maxLength: 40 }).map((text) => `Basic THE_ID:${text}`),
    fc.constantFrom('Basic', 'Bearer THE_TOKEN', 'Basic ====', 'Basic THE_ID'),
  );

  /** Fills in what only the running service knows; the secret is nowhere. */
  function filled(text: string, token: string): string {
    const { clientId } = service;
    return text
      .replaceAll('THE_ID', clientId)
      .replaceAll('the_id', clientId.toUpperCase())
      .replaceAll('THE_TOKEN', token);
  }

  function headersOf(given: string | undefined, token: string): Record<string, string> {
    if (given === undefined) return {};
    const [scheme = '', rest = ''] = filled(given, token).split(/ (.*)/s);
    return {
      authorization: rest.includes(':') ? `${scheme} ${Buffer.from(rest).toString('base64')}` : `${scheme} ${rest}`,
    };
  }

  it('never a 5xx, and never a token or an answer without the right secret (SERVICE-17, ERR-5)', async () => {
    const token = (await issuedTo(app, service)).credential;
    const before = issuedCount();
    const request = fc.record({ path, fields, type, authorization });
    await fc.assert(
      fc.asyncProperty(request, async ({ path: to, fields: given, type: contentType, authorization: by }) => {
        const pairs = given.map(([key, text]) => [key, filled(text, token)] as [string, string]);
        const isJson = contentType === 'application/json';
        const raw = isJson ? JSON.stringify(Object.fromEntries(pairs)) : new URLSearchParams(pairs).toString();
        const headers = { 'content-type': contentType, ...headersOf(by, token) };
        const { status, body } = await app.anonymous.call('POST', to, { raw, headers });
        expect([400, 401, 415]).toContain(status);
        expect(Object.keys(body).sort()).toEqual(['error', 'error_description']);
        expect(body.error_description).toMatch(describable);
        expect(JSON.stringify(body)).not.toContain(token);
      }),
      { numRuns: tries(600) },
    );
    expect(issuedCount()).toBe(before);
    expect((await app.with(token).get(`/users/internal/${admin.userId}`)).status).toBe(200);
  });

  it('with the right secret never a 5xx, and never a scope that the service lacks (SERVICE-11, SERVICE-13)', async () => {
    const scopeNames = [
      'USER_LOOKUP',
      'FETCH_CONFIG',
      'EVENTS_READ',
      'TOKEN_INTROSPECT',
      'user:lookup',
      'fetch:config',
      'x',
    ];
    const scope = fc.array(fc.constantFrom(...scopeNames), { maxLength: 4 }).map((names) => names.join(' '));
    const more = fields.map((given) => given.filter(([key]) => !key.startsWith('client_')));
    await fc.assert(
      fc.asyncProperty(more, scope, async (given, asked) => {
        const pairs: [string, string][] = [...given, ['grant_type', 'client_credentials'], ['scope', asked]];
        const { status, body } = await formTo(app)(
          '/oauth2/token',
          new URLSearchParams(pairs).toString(),
          basic(service),
        );
        expect([200, 400]).toContain(status);
        if (status === 400) return;
        const granted: string[] = body.scope.split(' ');
        for (const one of granted) expect(['USER_LOOKUP', 'TOKEN_INTROSPECT']).toContain(one);
        const wanted = new Set(
          asked
            .split(' ')
            .filter(Boolean)
            .map((one) => (one === 'user:lookup' ? 'USER_LOOKUP' : one)),
        );
        expect(new Set(granted)).toEqual(wanted.size === 0 ? new Set(['USER_LOOKUP', 'TOKEN_INTROSPECT']) : wanted);
      }),
      { numRuns: tries(300) },
    );
  });
});

describe('issued and self-signed scoped tokens side by side (SERVICE-14, T4)', () => {
  let app: TestApp;
  let admin: Client;
  let service: RegisteredService;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    service = await registerService(admin, ['USER_LOOKUP']);
  });
  afterAll(() => app.close());

  const routes = () => [
    `/users/internal/${admin.userId}`,
    '/users/email/exists?email=ada@example.com',
    '/userAccount/internal/password/check',
  ];
  const statuses = (client: Client) => Promise.all(routes().map(async (route) => (await client.get(route)).status));

  it('each is valid for its own scopes, and none for the other one’s (SERVICE-3)', async () => {
    expect(await statuses(await issuedTo(app, service))).toEqual([200, 200, 403]);
    expect(await statuses(app.service(['fetch:config']))).toEqual([403, 403, 200]);
    expect(await statuses(app.service(['USER_LOOKUP', 'FETCH_CONFIG']))).toEqual([200, 200, 200]);
    expect(await statuses(app.service(['TOKEN_INTROSPECT', 'EVENTS_READ']))).toEqual([403, 403, 403]);
  });

  it('403 or 401, and never more: scopes and times of every wrong form (SERVICE-3, SERVICE-14)', async () => {
    const nowSeconds = Math.floor(app.clock.now() / 1_000);
    const other = routes()[0] ?? '';
    for (const scopes of [
      'USER_LOOKUP',
      'x USER_LOOKUP',
      ['USER_LOOKUP FETCH_CONFIG'],
      [['USER_LOOKUP']],
      {},
      null,
      7,
    ]) {
      expect((await app.service(scopes).get(other)).status).toBe(403);
    }
    const claims: Record<string, Json>[] = [
      { exp: undefined },
      { exp: null },
      { exp: nowSeconds },
      { exp: nowSeconds + 86_402 },
      { exp: 1e308 },
      { exp: String(nowSeconds + 60) },
      { nbf: nowSeconds + 60 },
    ];
    for (const claim of claims) expect((await app.service(['USER_LOOKUP'], claim).get(other)).status).toBe(401);
    expect((await app.service(['USER_LOOKUP'], { exp: nowSeconds + 86_400 }).get(other)).status).toBe(200);
  });

  it('claims of a service do not make a self-signed token its own: ending the service leaves it be (SERVICE-10)', async () => {
    const known = await registerService(admin);
    const claims = { client_id: known.clientId, sub: known.clientId, tokenType: 'scoped' };
    const self = app.service(['USER_LOOKUP'], claims);
    const issued = await issuedTo(app, known);
    await admin.delete(`/service-clients/${known.clientId}`);
    const route = routes()[0] ?? '';
    expect([(await issued.get(route)).status, (await self.get(route)).status]).toEqual([401, 200]);
  });

  it('401 for self-signed ones as soon as the secret is taken away or exchanged; issued ones stay (SERVICE-14, CONFIG-26)', async () => {
    const route = routes()[0] ?? '';
    const [self, issued] = [app.service(), await issuedTo(app, service)];
    const given = app.environment['SCOPED_JWT_SECRET'] ?? '';
    for (const secret of ['', 'another-secret-of-thirty-two-bytes-0815']) {
      app.environment['SCOPED_JWT_SECRET'] = secret;
      app.services.reloadConfig();
      expect([(await self.get(route)).status, (await issued.get(route)).status]).toEqual([401, 200]);
    }
    app.environment['SCOPED_JWT_SECRET'] = given;
    app.services.reloadConfig();
    expect((await self.get(route)).status).toBe(200);
  });
});
