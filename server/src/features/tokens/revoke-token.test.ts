import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { secondConnection } from '../../../test/support/second-connection.ts';
import { type Client, TestApp, type TokenClient } from '../../../test/support/test-app.ts';
import { toTimestamp } from '../../base/clock.ts';

const absent = 'f'.repeat(24);
const done = { message: 'Personal access token revoked successfully' };

let app: TestApp;
let admin: Client;
let member: Client;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
  member = await app.member(admin, 'grace@example.com');
});
afterAll(() => app.close());

const own = (id: string) => `/personal-access-tokens/${id}`;
const anys = (id: string) => `/personal-access-tokens/admin/${id}`;
const stateOf = async ({ tokenId }: TokenClient) =>
  app.services.db.read
    .selectFrom('personal_access_tokens')
    .where('id', '=', tokenId)
    .select(['revoked_at', 'revoked_by', 'revoke_reason'])
    .executeTakeFirstOrThrow();

describe('DELETE /personal-access-tokens/:tokenId', () => {
  it('200: ends the token at once and for good (PAT-13, PAT-16, AUTH-23)', async () => {
    const token = await member.token();
    expect((await token.get('/org')).status).toBe(200);
    const response = await member.delete(own(token.tokenId));
    expect([response.status, response.body]).toEqual([200, done]);
    const refused = await token.get('/org');
    expect([refused.status, refused.body.error.code]).toEqual([401, 'TOKEN_REVOKED']);
    expect(refused.headers.get('www-authenticate')).toMatch(/^Bearer .*error="invalid_token"/);
  });

  it('200: stores who, when and the default reason (PAT-15)', async () => {
    const token = await member.token();
    await member.delete(own(token.tokenId));
    const expected = { revoked_at: app.clock.now(), revoked_by: member.userId, revoke_reason: 'Revoked by owner' };
    expect(await stateOf(token)).toEqual(expected);
  });

  it.each([
    ['the body', (id: string) => member.delete(own(id), { reason: 'Lost laptop' })],
    ['the query', (id: string) => member.delete(`${own(id)}?reason=Lost%20laptop`)],
    ['the body before the query', (id: string) => member.delete(`${own(id)}?reason=Other`, { reason: 'Lost laptop' })],
  ])('200: takes a reason from %s (PAT-15, HTTP-18)', async (_, revoke) => {
    const token = await member.token();
    expect((await revoke(token.tokenId)).status).toBe(200);
    expect((await stateOf(token)).revoke_reason).toBe('Lost laptop');
  });

  it('200: an empty body is no body, whatever its type says (HTTP-17)', async () => {
    const token = await member.token();
    const headers = { 'content-type': 'application/json' };
    expect((await member.call('DELETE', own(token.tokenId), { headers })).status).toBe(200);
  });

  it('200: a reason of 500 characters, emoji counted as one each (PAT-15)', async () => {
    const token = await member.token();
    const reason = '🔑'.repeat(500);
    expect((await member.delete(own(token.tokenId), { reason })).status).toBe(200);
    expect((await stateOf(token)).revoke_reason).toBe(reason);
  });

  it('200: the id in upper case (HTTP-20)', async () => {
    const token = await member.token();
    expect((await member.delete(own(token.tokenId.toUpperCase()))).status).toBe(200);
    expect((await token.get('/org')).status).toBe(401);
  });

  it('200: a PAT revokes itself, whatever its scopes and however its id is spelled (SCOPE-25)', async () => {
    for (const spelled of [(id: string) => id, (id: string) => id.toUpperCase()]) {
      const token = await member.token({ scopes: ['openid'] });
      expect((await token.delete(own(spelled(token.tokenId)))).status).toBe(200);
      expect((await token.get('/org')).status).toBe(401);
    }
  });

  it('200: everything that descends from it ends with it, and nothing beside it (SCOPE-24)', async () => {
    const root = await member.token();
    const middle = await root.token();
    const leaf = await middle.token();
    const sibling = await root.token();
    const stranger = await member.token();
    expect((await member.delete(own(middle.tokenId), { reason: 'leaked' })).status).toBe(200);
    const statuses = await Promise.all(
      [root, middle, leaf, sibling, stranger].map(async (token) => (await token.get('/org')).status),
    );
    expect(statuses).toEqual([200, 401, 401, 200, 200]);
    expect((await stateOf(leaf)).revoke_reason).toBe('leaked');
    const records = (await app.audit()).filter(({ action }) => action === 'token.revoked').slice(-2);
    const told = records.map(({ subject_id, details }) => [subject_id, details]);
    expect(told).toEqual([
      [middle.tokenId, { reason: 'leaked' }],
      [leaf.tokenId, { reason: 'leaked', descendsFrom: middle.tokenId }],
    ]);
  });

  it.each([1, 3])('200: all of a circle of %i that is stored, and what descends from it (CRED-12)', async (length) => {
    const circle = await Promise.all(Array.from({ length }, () => member.token()));
    const leaf = await (circle[0] as TokenClient).token();
    const stranger = await member.token();
    const store = secondConnection(app);
    for (const [place, { tokenId }] of circle.entries()) {
      const maker = circle[(place + 1) % length]?.tokenId;
      store.prepare('UPDATE personal_access_tokens SET parent_id = ? WHERE id = ?').run(maker, tokenId);
    }
    store.close();
    expect((await member.delete(own(circle[0]?.tokenId ?? ''))).status).toBe(200);
    const statuses = await Promise.all(
      [...circle, leaf, stranger].map(async (token) => (await token.get('/org')).status),
    );
    expect(statuses).toEqual([...circle.map(() => 401), 401, 200]);
  });

  it('200: no entity event tells of it (EVENT-19)', async () => {
    const token = await member.token();
    const before = await app.events();
    await member.delete(own(token.tokenId));
    expect(await app.events()).toEqual(before);
  });

  it.each([
    ['a reason of 501 characters', { reason: 'x'.repeat(501) }],
    ['a reason that is a number', { reason: 7 }],
    ['a reason that is null', { reason: null }],
    ['a list', ['x']],
  ])('400: %s, and the token lives on (PAT-15)', async (_, body) => {
    const token = await member.token();
    const response = await member.delete(own(token.tokenId), body);
    expect([response.status, response.body.error.code]).toEqual([400, 'VALIDATION_ERROR']);
    expect((await token.get('/org')).status).toBe(200);
  });

  it('400: a reason too long or given twice in the query (PAT-15)', async () => {
    const token = await member.token();
    for (const query of [`reason=${'x'.repeat(501)}`, 'reason=a&reason=b']) {
      expect((await member.delete(`${own(token.tokenId)}?${query}`)).status).toBe(400);
    }
  });

  it.each(['a'.repeat(23), 'a'.repeat(25), 'g'.repeat(24)])('400: the id %s (HTTP-19)', async (id) => {
    expect((await member.delete(own(id))).status).toBe(400);
  });

  it('401: without a credential (AUTH-1)', async () => {
    const token = await member.token();
    expect((await app.anonymous.delete(own(token.tokenId))).status).toBe(401);
    expect((await token.get('/org')).status).toBe(200);
  });

  it('403: a PAT without token:write on any other token, present or not (SCOPE-10, SCOPE-25, HTTP-4)', async () => {
    const token = await member.token({ scopes: ['token:read', 'token:admin'] });
    const other = await member.token();
    for (const id of [other.tokenId, absent, 'x']) {
      const { status, body } = await token.delete(own(id));
      expect([status, body.message]).toEqual([403, 'Insufficient scope. Required: token:write']);
    }
    expect((await other.get('/org')).status).toBe(200);
  });

  it('404: absent, revoked already, or another owner’s, even for an administrator (PAT-14, ERR-18)', async () => {
    const mine = await admin.token();
    const revoked = await member.token();
    await member.delete(own(revoked.tokenId));
    const texts = new Set<string>();
    for (const id of [absent, revoked.tokenId, mine.tokenId]) {
      const { status, body } = await member.delete(own(id));
      expect([status, body.error.code]).toEqual([404, 'NOT_FOUND']);
      texts.add(body.message);
    }
    expect(texts.size).toBe(1);
    const theirs = await member.token();
    expect((await admin.delete(own(theirs.tokenId))).status).toBe(404);
    expect((await mine.get('/org')).status).toBe(200);
    expect((await theirs.get('/org')).status).toBe(200);
  });
});

describe('DELETE /personal-access-tokens/admin/:tokenId', () => {
  it('200: an administrator ends anyone’s token; the list shows by whom, when and why (PAT-15, PAT-24, PAT-20)', async () => {
    const token = await member.token();
    const response = await admin.delete(anys(token.tokenId));
    expect([response.status, response.body]).toEqual([200, done]);
    expect((await token.get('/org')).status).toBe(401);
    const { body } = await admin.get('/personal-access-tokens/admin?status=revoked');
    expect(body.data.find(({ id }: { id: string }) => id === token.tokenId)).toMatchObject({
      revokedAt: toTimestamp(app.clock.now()),
      revokedBy: admin.userId,
      revokeReason: 'Revoked by administrator',
    });
  });

  it('200: by a PAT with token:admin, and of a removed owner’s token (PAT-24, SCOPE-10)', async () => {
    const leaving = await app.member(admin, 'leaving@example.com');
    const theirs = await leaving.token({ expiryDays: 'never' });
    await app.deleteUser(leaving.userId);
    const token = await admin.token({ scopes: ['token:admin'] });
    expect((await token.delete(`${anys(theirs.tokenId)}?reason=gone`)).status).toBe(200);
    expect(await stateOf(theirs)).toMatchObject({ revoked_by: admin.userId, revoke_reason: 'gone' });
  });

  it('400 ADMIN_REQUIRED: a member, before scope and input are looked at (PAT-24, HTTP-3, ERR-13)', async () => {
    const narrow = await member.token({ scopes: ['openid'] });
    const wide = await member.token();
    for (const caller of [member, narrow, wide]) {
      for (const id of [wide.tokenId, absent, 'x']) {
        const { status, body } = await caller.delete(anys(id));
        expect([status, body.error.code, body.message]).toEqual([400, 'ADMIN_REQUIRED', 'Admin access required']);
      }
    }
    expect((await wide.get('/org')).status).toBe(200);
  });

  it('403: an administrator’s PAT without token:admin, its own id included (SCOPE-10)', async () => {
    const token = await admin.token({ scopes: ['token:read', 'token:write'] });
    const { status, body } = await token.delete(anys(token.tokenId));
    expect([status, body.message]).toEqual([403, 'Insufficient scope. Required: token:admin']);
  });

  it('404: absent or revoked already (PAT-14)', async () => {
    const token = await member.token();
    await admin.delete(anys(token.tokenId));
    for (const id of [absent, token.tokenId, member.userId]) expect((await admin.delete(anys(id))).status).toBe(404);
  });
});
