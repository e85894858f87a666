import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp, type TestResponse } from '../../../test/support/test-app.ts';
import { day, toTimestamp } from '../../base/clock.ts';

const ids = ({ body }: TestResponse): string[] => body.tokens.map((token: { id: string }) => token.id);

describe('GET /personal-access-tokens', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  it('200: lists own active tokens, newest first, without owner fields (PAT-10, PAT-11)', async () => {
    const first = await admin.token({ name: 'first' });
    const second = await admin.token({ name: 'second', expiryDays: 'never' });
    const { status, body } = await admin.get('/personal-access-tokens');
    expect(status).toBe(200);
    expect(body.tokens.map((token: { id: string }) => token.id)).toEqual([second.tokenId, first.tokenId]);
    expect(Object.keys(body.tokens[0]).sort()).toEqual(
      ['createdAt', 'expiresAt', 'id', 'lastUsedAt', 'name', 'scopes'].sort(),
    );
    expect(body.tokens[0].expiresAt).toBe('Never');
  });

  it('200: an item says what the creation answer said, and null for a use that never was (PAT-10, PAT-30)', async () => {
    const { body: made } = await admin.post('/personal-access-tokens', { name: 'exact', scopes: ['org:read'] });
    const { body } = await admin.get('/personal-access-tokens');
    const { accessToken: _, ...shown } = made.token;
    expect(body.tokens[0]).toEqual({ ...shown, lastUsedAt: null });
    expect(body.tokens[0].createdAt).toBe(toTimestamp(app.clock.now()));
  });

  it('200: shows no one else’s tokens, not even to an administrator (PAT-1, PAT-11)', async () => {
    const member = await app.member(admin, 'grace@example.com');
    expect(ids(await member.get('/personal-access-tokens'))).toEqual([]);
    const { tokenId } = await member.token();
    expect(ids(await member.get('/personal-access-tokens'))).toEqual([tokenId]);
    expect(ids(await admin.get('/personal-access-tokens'))).not.toContain(tokenId);
  });

  it('200: leaves out what was revoked and what expired, at the very millisecond (PAT-11)', async () => {
    const member = await app.member(admin, 'joan@example.com');
    const revoked = await member.token();
    const expiring = await member.token({ expiryDays: 30 });
    const lasting = await member.token({ expiryDays: 'never' });
    await member.delete(`/personal-access-tokens/${revoked.tokenId}`);
    const createdMs = app.clock.now();
    const expiresMs = Math.floor((createdMs + 30 * day) / 1_000) * 1_000;
    app.clock.set(expiresMs - 1);
    const again = await app.signIn('joan@example.com');
    expect(ids(await again.get('/personal-access-tokens'))).toEqual([lasting.tokenId, expiring.tokenId]);
    app.clock.set(expiresMs);
    expect(ids(await again.get('/personal-access-tokens'))).toEqual([lasting.tokenId]);
    app.clock.set(createdMs);
  });

  it('200: shows the 100 most recent, though there is no limit to how many there are (PAT-9, PAT-11)', async () => {
    const member = await app.member(admin, 'mary@example.com');
    const made: string[] = [];
    for (let count = 0; count < 103; count += 1) made.push((await member.token()).tokenId);
    expect(ids(await member.get('/personal-access-tokens'))).toEqual(made.slice(-100).reverse());
  });

  it('200: a token with token:read lists its owner’s tokens (SCOPE-10)', async () => {
    const token = await admin.token({ scopes: ['token:read'] });
    expect(ids(await token.get('/personal-access-tokens'))).toContain(token.tokenId);
  });

  it('401: without a credential (AUTH-1)', async () => {
    const { status, body, headers } = await app.anonymous.get('/personal-access-tokens');
    expect([status, body.error.code]).toEqual([401, 'UNAUTHORIZED']);
    expect(headers.get('www-authenticate')).toMatch(/^Bearer /);
  });

  it('403: a token without token:read (SCOPE-10)', async () => {
    const token = await admin.token({ scopes: ['token:write', 'token:admin'] });
    const { status, body, headers } = await token.get('/personal-access-tokens');
    expect([status, body.error.code]).toEqual([403, 'INSUFFICIENT_SCOPE']);
    expect(body.message).toBe('Insufficient scope. Required: token:read');
    expect(headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope", scope="token:read"');
  });
});
