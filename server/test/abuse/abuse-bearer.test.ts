import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bareJwt } from '../support/jwt.ts';
import { type Client, TestApp, type TestResponse, type TokenClient } from '../support/test-app.ts';

let app: TestApp;
let admin: Client;
let token: TokenClient;
let shown: string;
let bare: string;

beforeAll(async () => {
  app = await TestApp.start({ PAT_PREFIXES_ACCEPTED: 'acme, lkpat_2025' });
  admin = await app.setUp();
  token = await admin.token();
  shown = token.credential ?? '';
  bare = bareJwt(shown);
});
afterAll(() => app.close());

const get = (authorization: string) => app.anonymous.get('/org', { headers: { authorization } });
const outcome = ({ status, body }: TestResponse) => `${status} ${status === 200 ? '' : body.error.code}`.trim();

describe('T6: the display prefix', () => {
  /** Everything of an answer that may tell one request from another, but the date. */
  const whole = ({ status, headers, text }: TestResponse) => ({
    status,
    text,
    headers: [...headers].filter(([name]) => name !== 'date'),
  });

  it.each([
    ['GET', '/org', undefined],
    ['GET', '/users', undefined],
    ['GET', '/personal-access-tokens/scopes', undefined],
    ['GET', '/personal-access-tokens/admin', undefined],
    ['GET', '/nowhere', undefined],
    ['GET', `/users/${'f'.repeat(24)}`, undefined],
    ['POST', '/personal-access-tokens', { name: '', scopes: [], expiryDays: 31 }],
    ['POST', '/personal-access-tokens', { name: 'x', scopes: ['org:fly'] }],
    ['DELETE', `/personal-access-tokens/${'f'.repeat(24)}`, undefined],
    ['POST', '/userAccount/logout/manual', undefined],
    ['PUT', '/org', {}],
  ])(
    'with, without and with an earlier prefix: %s %s answers byte for byte alike (PAT-25, PAT-26)',
    async (method, path, body) => {
      const headers = { 'x-request-id': 'the-same' };
      const responses: TestResponse[] = [];
      for (const credential of [shown, bare, `acme_${bare}`, `lkpat_2025_${bare}`]) {
        responses.push(await app.with(credential).call(method, path, { body, headers }));
      }
      for (const response of responses) expect(whole(response)).toEqual(whole(responses[0] ?? response));
      expect(responses[0]?.status).not.toBe(401);
    },
  );

  it.each([
    ['twice', () => `lkpat_${shown}`],
    ['two different ones', () => `acme_${shown}`],
    ['in upper case', () => `LKPAT_${bare}`],
    ['in mixed case', () => `Lkpat_${bare}`],
    ['without its underscore', () => `lkpat${bare}`],
    ['with two underscores', () => `lkpat__${bare}`],
    ['with a hyphen', () => `lkpat-${bare}`],
    ['with a space', () => `lkpat_ ${bare}`],
    ['with a look-alike letter', () => Buffer.from(`lkp\u0430t_${bare}`).toString('latin1')],
    ['with a look-alike underscore', () => Buffer.from(`lkpat\uff3f${bare}`).toString('latin1')],
    ['with an accent', () => `lkp\u00e1t_${bare}`],
    ['with a digit for a letter', () => `1kpat_${bare}`],
    ['of somebody else', () => `ghp_${bare}`],
    ['of which only a part is there', () => `pat_${bare}`],
    ['behind the token', () => `${bare}_lkpat`],
    ['alone', () => 'lkpat_'],
    ['alone, without its underscore', () => 'lkpat'],
    ['and the token’s id', () => `lkpat_${token.tokenId}`],
  ])('401: the prefix %s (PAT-26, AUTH-20)', async (_, credential) => {
    const response = await app.with(credential()).get('/org');
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toMatch(/^Bearer /);
  });

  it('a changed PAT_PREFIX strands no token where the earlier one is accepted, and is 401 where not (PAT-26, CONFIG-8)', async () => {
    const before = await TestApp.start();
    const earlier = await (await before.setUp()).token();
    await before.stop();
    const { dataDir } = before;
    const changed = await TestApp.start({
      DATA_DIR: dataDir,
      PAT_PREFIX: 'lkpat_2026',
      PAT_PREFIXES_ACCEPTED: 'lkpat',
    });
    expect((await changed.with(earlier.credential).get('/org')).status).toBe(200);
    const later = await changed.with(earlier.credential).token();
    expect(later.credential).toMatch(/^lkpat_2026_eyJ/);
    expect((await later.get('/org')).status).toBe(200);
    await changed.stop();
    const alone = await TestApp.start({ DATA_DIR: dataDir, PAT_PREFIX: 'other' });
    expect(outcome(await alone.with(earlier.credential).get('/org'))).toBe('401 TOKEN_INVALID');
    expect((await alone.with(bareJwt(earlier.credential ?? '')).get('/org')).status).toBe(200);
    await alone.close();
  });
});

describe('T7: the form of the header', () => {
  it.each(['Bearer ', 'bearer ', 'BEARER ', 'bEaReR ', 'Bearer  ', 'Bearer      '])(
    '200: %j before a session and a token (AUTH-1)',
    async (scheme) => {
      expect((await get(scheme + shown)).status).toBe(200);
      expect((await get(scheme + (admin.credential ?? ''))).status).toBe(200);
    },
  );

  it.each([
    ['nothing', () => '', 'UNAUTHORIZED'],
    ['Bearer alone', () => 'Bearer', 'UNAUTHORIZED'],
    ['Bearer and a space', () => 'Bearer ', 'UNAUTHORIZED'],
    ['the token alone', () => shown, 'UNAUTHORIZED'],
    ['no space', () => `Bearer${shown}`, 'UNAUTHORIZED'],
    ['a tab', () => `Bearer\t${shown}`, 'UNAUTHORIZED'],
    ['a colon', () => `Bearer: ${shown}`, 'UNAUTHORIZED'],
    ['Basic', () => `Basic ${Buffer.from(`${shown}:`).toString('base64')}`, 'UNAUTHORIZED'],
    ['Basic with the token', () => `Basic ${shown}`, 'UNAUTHORIZED'],
    ['Token', () => `Token ${shown}`, 'UNAUTHORIZED'],
    ['two tokens', () => `Bearer ${shown} ${shown}`, 'UNAUTHORIZED'],
    ['two schemes', () => `Bearer ${shown}, Bearer ${shown}`, 'UNAUTHORIZED'],
    ['quotes', () => `Bearer "${shown}"`, 'TOKEN_INVALID'],
    ['a parameter', () => `Bearer token=${shown}`, 'TOKEN_INVALID'],
    ['9 kB', () => `Bearer ${'x'.repeat(9_000)}`, 'TOKEN_INVALID'],
    ['9 kB that end in the token', () => `Bearer ${'x'.repeat(9_000)}${bare}`, 'TOKEN_INVALID'],
  ])('401: %s (AUTH-19, AUTH-20, ERR-14)', async (_, header, code) => {
    const response = await get(header());
    expect(outcome(response)).toBe(`401 ${code}`);
    const challenge = response.headers.get('www-authenticate') ?? '';
    expect(challenge).toMatch(/^Bearer realm="latchkey"/);
    expect(challenge.includes('error="invalid_token"')).toBe(code !== 'UNAUTHORIZED');
  });

  it('401: a token anywhere but in the header: query, body, cookie, other headers (AUTH-1)', async () => {
    const { anonymous } = app;
    const responses = await Promise.all([
      anonymous.get(`/org?access_token=${shown}`),
      anonymous.get(`/org?token=${bare}&authorization=Bearer%20${bare}`),
      anonymous.get('/org', {
        headers: { cookie: `access_token=${bare}; token=${bare}; authorization=Bearer ${bare}` },
      }),
      anonymous.get('/org', { headers: { 'x-session-token': admin.credential ?? '' } }),
      anonymous.get('/org', {
        headers: { 'proxy-authorization': `Bearer ${bare}`, 'x-authorization': `Bearer ${bare}` },
      }),
      anonymous.post('/personal-access-tokens', { name: 'x', access_token: shown, authorization: `Bearer ${shown}` }),
    ]);
    expect(responses.map(outcome)).toEqual(responses.map(() => '401 UNAUTHORIZED'));
  });

  it('401: identity claimed by headers counts for nothing (AUTH-1)', async () => {
    const headers = { 'x-user-id': admin.userId, 'x-forwarded-user': 'ada@example.com', 'x-is-admin': 'true' };
    expect(outcome(await app.anonymous.get('/org', { headers }))).toBe('401 UNAUTHORIZED');
    const member = await app.member(admin, 'grace@example.com');
    expect((await member.get('/personal-access-tokens/admin', { headers })).status).toBe(400);
    expect((await member.post('/personal-access-tokens', { name: 'x' }, { headers })).status).toBe(201);
    expect((await member.get('/personal-access-tokens')).body.tokens).toHaveLength(1);
  });

  it('405, 404: what is decided before any credential is the same for everyone (HTTP-5)', async () => {
    for (const caller of [app.anonymous, app.with('bad'), token]) {
      expect((await caller.get('/nowhere')).status).toBe(404);
      expect((await caller.call('PATCH', '/personal-access-tokens')).status).toBe(405);
    }
  });
});
