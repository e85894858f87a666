import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { secondConnection } from '../support/second-connection.ts';
import { type Client, TestApp, type TestResponse, type TokenClient } from '../support/test-app.ts';

const perMinute = 300;
const statusesOf = (responses: readonly TestResponse[]) => {
  const counts: Record<number, number> = {};
  for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};

/** Makes many calls, a few at a time. */
async function calls(count: number, call: (place: number) => Promise<TestResponse>): Promise<TestResponse[]> {
  const responses: TestResponse[] = [];
  let next = 0;
  const worker = async () => {
    while (next < count) {
      next += 1;
      responses.push(await call(next));
    }
  };
  await Promise.all(Array.from({ length: 10 }, worker));
  return responses;
}

function expectLimited({ status, headers, body }: TestResponse): void {
  expect([status, body.error.code]).toEqual([429, 'RATE_LIMITED']);
  const seconds = Number(headers.get('retry-after'));
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(60);
  expect(headers.get('ratelimit-limit')).toBe(String(perMinute));
  expect(headers.get('ratelimit-remaining')).toBe('0');
  expect(headers.get('ratelimit-reset')).toBe(String(seconds));
}

describe('T8: bad credentials by the hundred', () => {
  let app: TestApp;
  let admin: Client;
  let token: TokenClient;

  beforeAll(async () => {
    app = await TestApp.start({ RATE_LIMIT: 'on' });
    admin = await app.setUp();
    token = await admin.token();
  });
  afterAll(() => app.close());

  it('401 for exactly 300 of them, then 429; good ones from the same address go on (ERR-24)', async () => {
    const bad = (place: number) => app.with(`lkpat_bad-${place}`).get('/org');
    expect(statusesOf(await calls(perMinute, bad))).toEqual({ 401: perMinute });
    const beyond = await calls(50, bad);
    expect(statusesOf(beyond)).toEqual({ 429: 50 });
    for (const response of beyond) expectLimited(response);
    expect((await app.anonymous.get('/org')).status).toBe(429);
    const good = await calls(200, (place) => (place % 2 === 0 ? token : admin).get('/org'));
    expect(statusesOf(good)).toEqual({ 200: 200 });
    expect((await token.get('/personal-access-tokens/nowhere')).status).not.toBe(429);
  });

  it('no one talks their way out of it with forwarded addresses (CONFIG-16)', async () => {
    const headers = { 'x-forwarded-for': '203.0.113.7', forwarded: 'for=203.0.113.7', 'x-real-ip': '203.0.113.7' };
    expect((await app.with('bad').get('/org', { headers })).status).toBe(429);
  });
});

describe('T8 behind a trusted proxy', () => {
  it('counts by the client’s network, not by the proxy’s (CONFIG-16)', async () => {
    const app = await TestApp.start({ RATE_LIMIT: 'on', TRUST_PROXY: '127.0.0.1' });
    await app.setUp();
    const from = (address: string) => app.with('bad').get('/org', { headers: { 'x-forwarded-for': address } });
    await calls(perMinute, (place) => from(`2001:db8::${place.toString(16)}`));
    expect((await from('2001:db8::ffff')).status).toBe(429);
    expect((await from('2001:db8:0:1::1')).status).toBe(401);
    await app.close();
  });
});

describe('K12: minting by the hundred', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start({ RATE_LIMIT: 'on' });
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  it('201 for exactly 300 in a minute, then 429, by whatever credential; refused ones cost nothing, others go on (ERR-24, PAT-9)', async () => {
    const first = await admin.token();
    const asked = { name: 'x', scopes: ['openid'] };
    const wrong = await calls(20, () => admin.post('/personal-access-tokens', { name: '' }));
    expect(statusesOf(wrong)).toEqual({ 400: 20 });
    const mint = (place: number) => (place % 2 === 0 ? first : admin).post('/personal-access-tokens', asked);
    const responses = await calls(perMinute - 1 + 25, mint);
    expect(statusesOf(responses)).toEqual({ 201: perMinute - 1, 429: 25 });
    for (const response of responses.filter(({ status }) => status === 429)) expectLimited(response);
    const connection = secondConnection(app);
    const made = connection.prepare('SELECT count(*) FROM personal_access_tokens').pluck().get();
    connection.close();
    expect(made).toBe(perMinute);
    const member = await app.member(admin, 'grace@example.com');
    expect((await member.post('/personal-access-tokens', asked)).status).toBe(201);
    expect((await first.get('/org')).status).toBe(200);
  });
});
