import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { day } from '../../src/base/clock.ts';
import { type Client, TestApp, type TestResponse } from '../support/test-app.ts';

const path = '/personal-access-tokens';

let app: TestApp;
let admin: Client;
let member: Client;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
  member = await app.member(admin, 'grace@example.com');
});
afterAll(() => app.close());

const outcome = ({ status, body }: TestResponse) => (status < 400 ? String(status) : `${status} ${body.error.code}`);
const countOf = async () => (await member.get(path)).body.tokens.length as number;

describe('K2: scopes', () => {
  it.each([
    ['unknown', ['user:everything'], '400 INVALID_SCOPE'],
    ['one good, one unknown', ['user:read', 'user:everything'], '400 INVALID_SCOPE'],
    ['with a space at its end', ['user:read '], '400 INVALID_SCOPE'],
    ['a prototype’s member', ['toString'], '400 INVALID_SCOPE'],
    ['499 unknown ones', Array.from({ length: 499 }, (_, place) => `x:${place}`), '400 INVALID_SCOPE'],
    ['empty', [], '400 VALIDATION_ERROR'],
    ['10,000', Array.from({ length: 10_000 }, () => 'user:read'), '400 VALIDATION_ERROR'],
    ['a long one', ['x'.repeat(101)], '400 VALIDATION_ERROR'],
    ['numbers', [1, 2], '400 VALIDATION_ERROR'],
    ['a list in the list', [['user:read']], '400 VALIDATION_ERROR'],
    ['null in the list', ['user:read', null], '400 VALIDATION_ERROR'],
    ['a text', 'user:read', '400 VALIDATION_ERROR'],
    ['an object', { 0: 'user:read', length: 1 }, '400 VALIDATION_ERROR'],
  ])('%s (PAT-6)', async (_, scopes, expected) => {
    const before = await countOf();
    expect(outcome(await member.post(path, { name: 'x', scopes }))).toBe(expected);
    expect(await countOf()).toBe(before);
  });

  it('500 times the same one is one (PAT-6)', async () => {
    const { body } = await member.post(path, { name: 'x', scopes: Array.from({ length: 500 }, () => 'user:read') });
    expect(body.token.scopes).toEqual(['user:read']);
  });

  it('one that is no longer grantable is 400 for new tokens and 403 for old ones (SCOPE-8, SCOPE-9)', async () => {
    const first = await TestApp.start();
    const token = await (await first.setUp()).token({ scopes: ['org:read', 'token:write'] });
    await first.stop();
    const narrowed = await TestApp.start({ DATA_DIR: first.dataDir, MCP_SCOPES: 'user:read,token:write' });
    const old = narrowed.with(token.credential);
    expect(outcome(await old.get('/org'))).toBe('403 INSUFFICIENT_SCOPE');
    expect(outcome(await old.post(path, { name: 'x', scopes: ['org:read'] }))).toBe('400 INVALID_SCOPE');
    expect(outcome(await old.post(path, { name: 'x', scopes: ['user:read'] }))).toBe('403 INSUFFICIENT_SCOPE');
    await narrowed.close();
  });
});

describe('K3: names', () => {
  it.each([
    ['1 letter', 'x', 'x'],
    ['100 letters', 'x'.repeat(100), 'x'.repeat(100)],
    ['100 emoji', '🔑'.repeat(100), '🔑'.repeat(100)],
    ['100 letters between spaces', `  ${'x'.repeat(100)}\t\n`, 'x'.repeat(100)],
    ['200 code points that make 100 letters', 'e\u0301'.repeat(100), 'é'.repeat(100)],
    ['an emoji of several', '👩‍💻', '👩‍💻'],
    ['right-to-left letters', 'מפתח', 'מפתח'],
    ['text that means something elsewhere', `<b>"';-- {{7*7}} %s \${x} \\`, `<b>"';-- {{7*7}} %s \${x} \\`],
  ])('201: %s (PAT-4)', async (_, name, stored) => {
    const { status, body } = await member.post(path, { name });
    expect([status, body.token.name]).toEqual([201, stored]);
    expect((await member.get(path)).body.tokens[0].name).toBe(stored);
  });

  it.each([
    ['nothing', '""'],
    ['only spaces', '"  \\t \\u00a0 "'],
    ['101 letters', `"${'x'.repeat(101)}"`],
    ['101 emoji', `"${'🔑'.repeat(101)}"`],
    ['a megabyte less a little', `"${'x'.repeat(1_000_000)}"`],
    ['NUL', '"a\\u0000b"'],
    ['a line break', '"a\\nb"'],
    ['a line separator', '"a\\u2028b"'],
    ['an escape', '"a\\u001bb"'],
    ['a right-to-left override', '"a\\u202eb"'],
    ['a right-to-left isolate', '"a\\u2067b"'],
    ['half an emoji', '"\\ud83d"'],
    ['the other half', '"x\\udd11"'],
    ['a number', '7'],
    ['true', 'true'],
    ['null', 'null'],
    ['a list', '["x"]'],
    ['an object', '{"x":"x"}'],
  ])('400: %s (PAT-4, HTTP-13, HTTP-14)', async (_, name) => {
    const before = await countOf();
    const headers = { 'content-type': 'application/json' };
    const response = await member.call('POST', path, { raw: `{"name":${name}}`, headers });
    expect(outcome(response)).toBe('400 VALIDATION_ERROR');
    expect(await countOf()).toBe(before);
  });
});

describe('K4: lifetimes', () => {
  it.each([
    31,
    '30',
    0,
    -1,
    -30,
    1e9,
    30.5,
    null,
    true,
    false,
    'Never',
    'NEVER',
    '',
    'forever',
    [30],
    {},
    29,
    364,
    366,
  ])('400: expiryDays %j (PAT-7)', async (expiryDays) => {
    const { status, body } = await member.post(path, { name: 'x', expiryDays });
    expect([status, body.error.code]).toEqual([400, 'VALIDATION_ERROR']);
    expect(body.error.details).toEqual([{ field: 'body.expiryDays', message: 'must be 30, 90, 365 or "never"' }]);
  });

  it.each(['1e999', '-0', '30.0000000000000001e0x', '0x1e'])(
    '400 or as 30: the number %s is never more',
    async (number) => {
      const headers = { 'content-type': 'application/json' };
      const raw = `{"name":"x","expiryDays":${number}}`;
      expect(outcome(await member.call('POST', path, { raw, headers }))).toBe('400 VALIDATION_ERROR');
    },
  );
});

describe('K5: ids that are not for the caller', () => {
  it('404, one and the same, for each of them (PAT-14, ERR-18)', async () => {
    const theirs = await admin.token({ expiryDays: 'never' });
    const twice = await member.token();
    await member.delete(`${path}/${twice.tokenId}`);
    const nowMs = app.clock.now();
    const expired = await member.token({ expiryDays: 30 });
    app.clock.advance(30 * day);
    const later = await app.signIn('grace@example.com');
    const responses = await Promise.all(
      [theirs.tokenId, twice.tokenId, expired.tokenId, member.userId, admin.userId, '0'.repeat(24)].map((id) =>
        later.delete(`${path}/${id}`, undefined, { headers: { 'x-request-id': 'same' } }),
      ),
    );
    const texts = responses.map(({ status, text }) => `${status} ${text}`);
    expect(texts).toEqual(texts.map(() => texts[0]));
    expect(responses[0] && outcome(responses[0])).toBe('404 NOT_FOUND');
    const administrator = await app.signIn('ada@example.com');
    expect(outcome(await administrator.delete(`${path}/admin/${expired.tokenId}`))).toBe('404 NOT_FOUND');
    app.clock.set(nowMs);
    expect((await theirs.get('/org')).status).toBe(200);
  });

  it('200 for one of two who revoke at once, 404 for the other; audited once (PAT-14)', async () => {
    const token = await member.token();
    const responses = await Promise.all([
      ...Array.from({ length: 8 }, () => member.delete(`${path}/${token.tokenId}`)),
      ...Array.from({ length: 8 }, () => admin.delete(`${path}/admin/${token.tokenId}`)),
    ]);
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(responses.filter(({ status }) => status === 404)).toHaveLength(15);
    const records = (await app.audit()).filter(({ subject_id }) => subject_id === token.tokenId);
    expect(records.map(({ action }) => action)).toEqual(['token.created', 'token.revoked']);
  });
});

describe('K6, K7, K8: owners who change', () => {
  it('an administrator who loses the role loses it at the next call, for session and token (AUTH-29, SCOPE-1)', async () => {
    const second = await app.member(admin, 'second@example.com');
    await app.promote(second.userId);
    const token = await second.token();
    for (const caller of [second, token]) expect((await caller.get(`${path}/admin`)).status).toBe(200);
    await app.demote(second.userId);
    for (const caller of [second, token]) {
      expect(outcome(await caller.get(`${path}/admin`))).toBe('400 ADMIN_REQUIRED');
      const newUser = { fullName: 'N N', email: 'nn@example.com' };
      expect(outcome(await caller.post('/users', newUser))).toBe('403 ADMIN_REQUIRED');
      expect((await caller.get('/users')).status).toBe(200);
      expect((await caller.get(path)).status).toBe(200);
    }
  });

  it('a deleted owner’s credentials end with the deletion; everyone else’s work on (AUTH-24, AUTH-27, PAT-29)', async () => {
    const leaving = await app.member(admin, 'leaving@example.com');
    const [theirs, others, mine] = await Promise.all([leaving.token(), member.token(), admin.token()]);
    const child = await theirs.token();
    await app.deleteUser(leaving.userId);
    for (const caller of [leaving, theirs, child]) {
      expect(outcome(await caller.get('/org'))).toBe('401 TOKEN_INVALID');
      expect(outcome(await caller.post(path, { name: 'x' }))).toBe('401 TOKEN_INVALID');
    }
    for (const caller of [member, others, admin, mine]) expect((await caller.get('/org')).status).toBe(200);
    expect((await member.get(path)).body.tokens.map(({ id }: { id: string }) => id)).toContain(others.tokenId);
  });

  it('every credential ends with the organization (AUTH-24)', async () => {
    const other = await TestApp.start();
    const owner = await other.setUp();
    const token = await owner.token({ expiryDays: 'never' });
    await other.deleteOrganization();
    for (const caller of [owner, token]) expect(outcome(await caller.get('/org'))).toBe('401 TOKEN_INVALID');
    await other.close();
  });
});
