import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp, type TestResponse, type TokenClient } from '../../../test/support/test-app.ts';
import { day, toTimestamp } from '../../base/clock.ts';

const path = '/personal-access-tokens/admin';
const ids = ({ body }: TestResponse): string[] => body.data.map((token: { id: string }) => token.id);

describe('GET /personal-access-tokens/admin', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  let removed: Client;
  /** One token of each state, in the order in which they were made. */
  let tokens: Record<'expired' | 'revoked' | 'mine' | 'theirs' | 'removedOwners', TokenClient>;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com', 'Grace Hopper');
    removed = await app.member(admin, 'joan_clarke@example.com', 'Joan Clarke');
    const expired = await member.token({ name: 'expired' });
    app.clock.advance(30 * day);
    [admin, member, removed] = (await Promise.all(
      ['ada@example.com', 'grace@example.com', 'joan_clarke@example.com'].map((email) => app.signIn(email)),
    )) as [Client, Client, Client];
    const revoked = await member.token({ name: 'revoked' });
    await member.delete(`/personal-access-tokens/${revoked.tokenId}`, { reason: 'lost' });
    const mine = await admin.token({ name: 'Deploy 100%' });
    const theirs = await member.token({ name: 'ÜBER deploy', expiryDays: 'never' });
    const removedOwners = await removed.token({ name: 'left over' });
    await app.deleteUser(removed.userId);
    tokens = { expired, revoked, mine, theirs, removedOwners };
  });
  afterAll(() => app.close());

  const named = (response: TestResponse) =>
    ids(response).map((id) => Object.entries(tokens).find(([, { tokenId }]) => tokenId === id)?.[0] ?? id);

  it('200: everyone’s active tokens, newest first, removed owners’ included (PAT-18, PAT-21)', async () => {
    const response = await admin.get(path);
    expect(response.status).toBe(200);
    expect(named(response)).toEqual(['removedOwners', 'theirs', 'mine']);
    expect(response.body.pagination).toEqual({ page: 1, limit: 100, total: 3, totalPages: 1 });
  });

  it('200: an item is an own item with its owner; a removed one by the last known name and address (PAT-20, PAT-23)', async () => {
    const { body } = await admin.get(path);
    const own = (await member.get('/personal-access-tokens')).body.tokens[0];
    expect(body.data[1]).toEqual({
      ...own,
      userId: member.userId,
      ownerEmail: 'grace@example.com',
      ownerFullName: 'Grace Hopper',
      ownerDeleted: false,
    });
    expect(body.data[1].expiresAt).toBe('Never');
    expect(body.data[0]).toMatchObject({
      userId: removed.userId,
      ownerEmail: 'joan_clarke@example.com',
      ownerFullName: 'Joan Clarke',
      ownerDeleted: true,
    });
  });

  it('200: a revoked one says when, by whom and why (PAT-20)', async () => {
    const { body } = await admin.get(`${path}?status=revoked`);
    expect(body.data[0]).toMatchObject({
      id: tokens.revoked.tokenId,
      revokedAt: toTimestamp(app.clock.now()),
      revokedBy: member.userId,
      revokeReason: 'lost',
    });
  });

  it.each([
    ['status=active', ['removedOwners', 'theirs', 'mine']],
    ['status=expired', ['expired']],
    ['status=revoked', ['revoked']],
    ['status=all', ['removedOwners', 'theirs', 'mine', 'revoked', 'expired']],
    ['search=deploy', ['theirs', 'mine']],
    ['search=DEPLOY%20100%25', ['mine']],
    ['search=%25', ['mine']],
    ['search=_', ['removedOwners']],
    ['search=%C3%BCber', ['theirs']],
    ['search=hopper', ['theirs']],
    ['search=ada%40example', ['mine']],
    ['search=hopper&status=all', ['theirs', 'revoked', 'expired']],
    ['search=nobody', []],
    ['search=', ['removedOwners', 'theirs', 'mine']],
    ['search=%27%20OR%201%3D1%20--', []],
  ])('200: ?%s leaves %j (PAT-22)', async (query, expected) => {
    const response = await admin.get(`${path}?${query}`);
    expect(named(response)).toEqual(expected);
    expect(response.body.pagination.total).toBe(expected.length);
  });

  it('200: ?userId leaves one person’s, in either case, and none for an unknown one (PAT-22, HTTP-20)', async () => {
    expect(named(await admin.get(`${path}?userId=${member.userId}`))).toEqual(['theirs']);
    expect(named(await admin.get(`${path}?userId=${member.userId.toUpperCase()}`))).toEqual(['theirs']);
    expect(named(await admin.get(`${path}?userId=${'f'.repeat(24)}`))).toEqual([]);
  });

  it.each([1, 2, 3, 4, 5, 6])('200: pages of %i make the whole list, in its order (PAT-18, PAT-19)', async (limit) => {
    const whole = ['removedOwners', 'theirs', 'mine', 'revoked', 'expired'];
    const walked: string[] = [];
    for (let page = 1; page <= Math.ceil(whole.length / limit) + 1; page += 1) {
      walked.push(...named(await admin.get(`${path}?status=all&limit=${limit}&page=${page}`)));
    }
    expect(walked).toEqual(whole);
  });

  it('200: pages follow each other without gap or overlap, and end (PAT-18, PAT-19)', async () => {
    const pages = await Promise.all([1, 2, 3, 4].map((page) => admin.get(`${path}?status=all&limit=2&page=${page}`)));
    expect(pages.map(named)).toEqual([['removedOwners', 'theirs'], ['mine', 'revoked'], ['expired'], []]);
    for (const [place, { body }] of pages.entries()) {
      expect(body.pagination).toEqual({ page: place + 1, limit: 2, total: 5, totalPages: 3 });
    }
  });

  it('200: a PAT with token:admin (SCOPE-10)', async () => {
    const token = await admin.token({ scopes: ['token:admin'] });
    expect((await token.get(path)).status).toBe(200);
    await token.delete(`${path}/${token.tokenId}`);
  });

  it.each(['page=0', 'page=-1', 'page=1.5', 'page=x', 'page=', 'limit=0', 'limit=101', 'limit=1e2', 'limit=007'])(
    '400: ?%s (PAT-19, HTTP-21)',
    async (query) => {
      const { status, body } = await admin.get(`${path}?${query}`);
      expect([status, body.error.code]).toEqual([400, 'VALIDATION_ERROR']);
      expect(body.error.details[0].field).toBe(`query.${query.split('=')[0]}`);
    },
  );

  it.each(['status=dead', 'status=', 'userId=abc', 'status=all&status=active', 'search=a%00b'])(
    '400: ?%s (PAT-22)',
    async (query) => {
      expect((await admin.get(`${path}?${query}`)).status).toBe(400);
    },
  );

  it('400 ADMIN_REQUIRED: a member, whatever the credential and the input (ERR-13, HTTP-3)', async () => {
    const wide = await member.token();
    const narrow = await member.token({ scopes: ['openid'] });
    for (const caller of [member, wide, narrow]) {
      for (const query of ['', '?page=0']) {
        const { status, body } = await caller.get(path + query);
        expect([status, body.error.code, body.message]).toEqual([400, 'ADMIN_REQUIRED', 'Admin access required']);
      }
    }
    for (const { tokenId } of [wide, narrow]) await member.delete(`/personal-access-tokens/${tokenId}`);
  });

  it('401: without a credential (AUTH-1)', async () => {
    expect((await app.anonymous.get(path)).status).toBe(401);
  });

  it('403: an administrator’s PAT without token:admin (SCOPE-10)', async () => {
    const token = await admin.token({ scopes: ['token:read', 'token:write', 'org:admin'] });
    const { status, body } = await token.get(path);
    expect([status, body.message]).toEqual([403, 'Insufficient scope. Required: token:admin']);
  });
});
