import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addressOf } from '../../src/http/endpoint.ts';
import { routes } from '../../src/routes.gen.ts';
import { attemptSignIn } from '../support/sign-in.ts';
import { type Client, password, TestApp } from '../support/test-app.ts';

/** Headers that a proxy, or an impostor, may add. */
const forged: Record<string, string> = {
  'x-forwarded-for': '203.0.113.9',
  'x-forwarded-host': 'evil.example',
  'x-forwarded-proto': 'https',
  'x-real-ip': '203.0.113.9',
  'true-client-ip': '203.0.113.9',
  'cf-connecting-ip': '203.0.113.9',
  'x-client-ip': '203.0.113.9',
  forwarded: 'for=203.0.113.9;host=evil.example',
};

async function started(environment: Record<string, string>): Promise<{ app: TestApp; admin: Client }> {
  const app = await TestApp.start(environment);
  return { app, admin: await app.setUp() };
}

/** The network in the audit row of a token made with these headers. */
async function auditedNetwork({ app, admin }: { app: TestApp; admin: Client }, headers: Record<string, string>) {
  const { status } = await admin.post('/personal-access-tokens', { name: 'x' }, { headers });
  expect(status).toBe(201);
  return (await app.audit()).at(-1).network;
}

describe('A6: forwarded headers from someone who is not a trusted proxy', () => {
  let it1: { app: TestApp; admin: Client };

  beforeAll(async () => {
    it1 = await started({ TRUST_PROXY: '10.0.0.0/8, 192.0.2.7', RATE_LIMIT: 'on' });
  });
  afterAll(() => it1.app.close());

  it.each(Object.entries(forged))('%s: %s does not change the network of the audit row', async (name, value) => {
    expect(await auditedNetwork(it1, { [name]: value })).toBe('127.0.0.1');
  });

  it('a trusted address that is only claimed counts for nothing', async () => {
    expect(await auditedNetwork(it1, { 'x-forwarded-for': '203.0.113.9, 10.0.0.1, 192.0.2.7' })).toBe('127.0.0.1');
  });

  it.each(['X-User-Id', 'X-Is-Admin', 'X-Remote-User', 'X-Org-Id', 'X-Authenticated-User', 'Cookie'])(
    '%s is no one',
    async (name) => {
      const value = name === 'Cookie' ? `token=${it1.admin.credential}` : it1.admin.userId;
      expect((await it1.app.anonymous.get('/users', { headers: { [name]: value } })).status).toBe(401);
    },
  );

  it('nor is it someone else, on any route, whatever else it claims', async () => {
    const { app, admin } = it1;
    const member = await app.member(admin, 'grace@example.com');
    const claims = {
      'x-user-id': admin.userId,
      'x-is-admin': 'true',
      'x-roles': 'admin',
      'x-original-url': '/api/v1/org/exists',
      'x-http-method-override': 'GET',
      'x-forwarded-user': 'ada@example.com',
      'x-scopes': 'USER_LOOKUP org:admin',
    };
    const closed = routes.filter(({ policy }) => ['admin', 'adminOrSelf', 'service'].includes(policy.who));
    for (const { policy, method, ...route } of closed) {
      const path = addressOf(route).replace(/:\w+/, admin.userId);
      const body = method === 'GET' || method === 'DELETE' ? {} : { body: {} };
      const { body: error } = await member.call(method, `/${path}`, { ...body, headers: claims });
      const codes = { admin: 'ADMIN_REQUIRED', adminOrSelf: 'FORBIDDEN', service: 'TOKEN_INVALID' } as const;
      const code = codes[policy.who as keyof typeof codes];
      expect([path, error.error?.code]).toEqual([path, code]);
    }
  });

  it('a new address with each try does not escape the slow-down of sign-in', async () => {
    const statuses: number[] = [];
    for (let attempt = 0; attempt < 7; attempt += 1) {
      const headers = { 'x-forwarded-for': `203.0.113.${attempt}`, 'x-real-ip': `203.0.113.${attempt}` };
      const email = 'ada@example.com';
      const response = await attemptSignIn(it1.app, { email, password: `${password}!`, headers });
      statuses.push(response.status);
    }
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429]);
  });
});

describe('A6: forwarded headers from a trusted proxy', () => {
  let it1: { app: TestApp; admin: Client };

  beforeAll(async () => {
    it1 = await started({ TRUST_PROXY: '127.0.0.0/8 10.0.0.0/8', RATE_LIMIT: 'on' });
  });
  afterAll(() => it1.app.close());

  it.each([
    ['the client', '203.0.113.9', '203.0.113.9'],
    ['the last that is not trusted, whatever stands before', '198.51.100.1, 203.0.113.9', '203.0.113.9'],
    ['the client behind two trusted proxies', '203.0.113.9, 10.1.2.3', '203.0.113.9'],
    ['an address of IPv6', '2001:db8::1', '2001:db8::1'],
  ])('%s is the network of the audit row: %s', async (_, value, network) => {
    expect(await auditedNetwork(it1, { 'x-forwarded-for': value })).toBe(network);
  });

  it.each(['x-real-ip', 'true-client-ip', 'x-client-ip', 'forwarded'])(
    'only x-forwarded-for is read, not %s',
    async (name) => {
      expect(await auditedNetwork(it1, { [name]: forged[name] ?? '' })).toBe('127.0.0.1');
    },
  );

  it.each(['', ',', ', ,', 'garbage', "'; DROP TABLE users; --", '1.2.3.4.5', 'a'.repeat(8_000)])(
    'a value without sense is no fault: %j',
    async (value) => {
      const { status } = await it1.admin.get('/users', { headers: { 'x-forwarded-for': value } });
      expect(status).toBe(200);
    },
  );

  it('limits count by client: one who is slowed down does not slow another', async () => {
    const attempt = async (network: string) => {
      const options = { email: 'ada@example.com', password: `${password}!`, headers: { 'x-forwarded-for': network } };
      return (await attemptSignIn(it1.app, options)).status;
    };
    for (let count = 0; count < 5; count += 1) expect(await attempt('203.0.113.9')).toBe(401);
    expect(await attempt('203.0.113.9')).toBe(429);
    expect(await attempt('198.51.100.1')).toBe(401);
  });
});
