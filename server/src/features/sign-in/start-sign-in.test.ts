import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimsOf } from '../../../test/support/sign-in.ts';
import { TestApp } from '../../../test/support/test-app.ts';

const path = '/userAccount/initAuth';
const begun = {
  currentStep: 0,
  allowedMethods: ['password'],
  message: 'Sign-in begun',
  authProviders: {},
  jitEnabled: false,
};

describe('POST /userAccount/initAuth', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await TestApp.start();
  });
  afterAll(() => app.close());

  it('200: the same before there is an organization (AUTH-3, AUTH-4)', async () => {
    const { status, body } = await app.anonymous.post(path, { email: 'ada@example.com' });
    expect(status).toBe(200);
    expect(body).toEqual(begun);
    await app.setUp();
  });

  it('200: answers alike for known and unknown addresses, deleted people and none (AUTH-3, AUTH-4)', async () => {
    const admin = await app.signIn('ada@example.com');
    const gone = await app.member(admin, 'gone@example.com');
    await app.deleteUser(gone.userId);
    const tokens: string[] = [];
    for (const email of ['ada@example.com', 'eve@example.com', 'gone@example.com']) {
      const { status, body, headers } = await app.anonymous.post(path, { email });
      expect(status).toBe(200);
      expect(body).toEqual(begun);
      tokens.push(headers.get('x-session-token') ?? '');
      expect(headers.get('cache-control')).toBe('no-store');
    }
    const claims = tokens.map(claimsOf);
    expect(new Set(claims.map((held) => Object.keys(held).join()))).toHaveProperty('size', 1);
    expect(claims[0]).toMatchObject({ tokenType: 'sign-in' });
    expect(claims[0].exp - claims[0].iat).toBe(3_600);
    for (const body of [undefined, {}]) {
      expect(await app.anonymous.post(path, body)).toMatchObject({ status: 200, body: begun });
    }
  });

  it('200: every sign-in has a token of its own (AUTH-3)', async () => {
    const tokens = await Promise.all(
      [1, 2, 3].map(async () => (await app.anonymous.post(path)).headers.get('x-session-token')),
    );
    expect(new Set(tokens).size).toBe(3);
  });

  it.each(['nobody', '', 7, null, ['ada@example.com'], { $ne: null }, `${'a'.repeat(300)}@example.com`])(
    '400: an address that is none: %j (ERR-10)',
    async (email) => {
      const { status, body } = await app.anonymous.post(path, { email });
      expect(status).toBe(400);
      expect(body.error.details).toEqual([{ field: 'body.email', message: expect.any(String) }]);
    },
  );

  it('200: writes nothing (AUTH-3)', async () => {
    const before = app.services.db.dataVersion();
    expect((await app.anonymous.post(path, { email: 'ada@example.com' })).status).toBe(200);
    expect(app.services.db.dataVersion()).toBe(before);
  });
});

describe('POST /userAccount/initAuth with RATE_LIMIT on', () => {
  it('429: after 300 in a minute from one network, with Retry-After; others go on (ERR-24)', async () => {
    const app = await TestApp.start({ RATE_LIMIT: 'on', TRUST_PROXY: '127.0.0.1' });
    try {
      const from = (address: string) => app.anonymous.post(path, {}, { headers: { 'x-forwarded-for': address } });
      const responses: Awaited<ReturnType<typeof from>>[] = [];
      // All at once would be more than a busy machine answers in time.
      for (let group = 0; group < 5; group += 1) {
        responses.push(...(await Promise.all(Array.from({ length: 61 }, () => from('198.51.100.7')))));
      }
      expect(responses.filter(({ status }) => status === 200)).toHaveLength(300);
      const [refused] = responses.filter(({ status }) => status === 429);
      expect(refused?.body.error.code).toBe('RATE_LIMITED');
      expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(refused?.headers.get('ratelimit-limit')).toBe('300');
      expect(refused?.headers.get('ratelimit-remaining')).toBe('0');
      expect((await from('198.51.100.8')).status).toBe(200);
    } finally {
      await app.close();
    }
  });
});
