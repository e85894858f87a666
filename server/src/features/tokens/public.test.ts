import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { secondConnection } from '../../../test/support/second-connection.ts';
import { type Client, TestApp, type TokenClient } from '../../../test/support/test-app.ts';
import { day, hour } from '../../base/clock.ts';
import { addUnusableTokens, pruneTokens, revokeTokensOf } from './public.ts';

describe('pruneTokens', () => {
  let app: TestApp;
  let admin: Client;
  let startMs: number;
  const start = async (environment: Record<string, string> = {}) => {
    app = await TestApp.start(environment);
    admin = await app.setUp();
    startMs = app.clock.now();
  };

  beforeEach(() => start({ TOKEN_RETENTION_DAYS: '365' }));
  afterEach(() => app.close());

  const exists = async ({ tokenId }: TokenClient) =>
    (await app.services.db.read.selectFrom('personal_access_tokens').where('id', '=', tokenId).select('id').execute())
      .length === 1;
  const removals = async () => (await app.audit()).filter(({ action }) => action === 'tokens.pruned');
  const pruneAt = (ms: number) => {
    app.clock.set(ms);
    return pruneTokens(app.services);
  };

  it('keeps what was revoked for as long as it is told, to the millisecond (PAT-32)', async () => {
    const token = await admin.token({ expiryDays: 'never' });
    app.clock.advance(day);
    await app.with(token.credential).delete(`/personal-access-tokens/${token.tokenId}`);
    const revokedMs = app.clock.now();
    expect(await pruneAt(revokedMs + 365 * day)).toBe(0);
    expect(await exists(token)).toBe(true);
    expect(await pruneAt(revokedMs + 365 * day + 1)).toBe(1);
    expect(await exists(token)).toBe(false);
    const { status, body } = await token.get('/org');
    expect([status, body.error.code]).toEqual([401, 'TOKEN_INVALID']);
  });

  it('keeps what expired for as long, and what lives for ever (PAT-32)', async () => {
    const expiring = await admin.token({ expiryDays: 30 });
    const lasting = await admin.token({ expiryDays: 'never' });
    const expiredMs = Math.floor((startMs + 30 * day) / 1_000) * 1_000;
    expect(await pruneAt(expiredMs + 365 * day)).toBe(0);
    expect(await pruneAt(expiredMs + 365 * day + 1)).toBe(1);
    expect([await exists(expiring), await exists(lasting)]).toEqual([false, true]);
    expect(await pruneAt(startMs + 40_000 * day)).toBe(0);
    expect((await lasting.get('/org')).status).toBe(200);
  });

  it('removes a whole family that ended, and writes down how many there were (PAT-32, AUDIT-1)', async () => {
    const root = await admin.token();
    const child = await root.token();
    const leaf = await child.token();
    await admin.delete(`/personal-access-tokens/${root.tokenId}`);
    expect(await pruneAt(startMs + 366 * day)).toBe(3);
    expect(await Promise.all([root, child, leaf].map(exists))).toEqual([false, false, false]);
    expect(await removals()).toMatchObject([{ actor_user_id: null, org_id: null, details: { count: 3 } }]);
    expect(await pruneAt(startMs + 400 * day)).toBe(0);
    expect(await removals()).toHaveLength(1);
  });

  it('goes in batches, so that no one waits for long (PAT-32)', async () => {
    const token = await admin.token();
    const connection = secondConnection(app);
    connection
      .prepare(
        `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
         INSERT INTO personal_access_tokens (id, hash, org_id, user_id, name, scopes, created_at, revoked_at)
         SELECT '0000000000000000' || (10000000 + i), 'hash ' || i, org_id, user_id, 'old', 'openid', 1, 1
         FROM n, personal_access_tokens WHERE id = ?`,
      )
      .run(token.tokenId);
    connection.close();
    expect(await pruneAt(startMs)).toBe(1_200);
    expect((await removals()).map(({ details }) => details.count)).toEqual([500, 500, 200]);
    expect(await exists(token)).toBe(true);
  });

  it('happens by itself every hour, with the days that were configured (PAT-32, CONFIG-15)', async () => {
    await app.close();
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      await start({ TOKEN_RETENTION_DAYS: '1' });
      const token = await admin.token();
      await admin.delete(`/personal-access-tokens/${token.tokenId}`);
      app.clock.advance(day);
      await vi.advanceTimersByTimeAsync(hour);
      expect(await exists(token)).toBe(true);
      app.clock.advance(hour);
      await vi.advanceTimersByTimeAsync(hour);
      await expect.poll(() => exists(token), { timeout: 15_000, interval: 10 }).toBe(false);
      await expect.poll(() => app.logLines.join(), { timeout: 15_000, interval: 10 }).toContain('removed expired data');
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('revokeTokensOf', () => {
  it('notes each of very many tokens once, and only those that it ended (AUDIT-1, STORE-1)', async () => {
    const app = await TestApp.start();
    const admin = await app.setUp();
    const { orgId } = (await admin.get(`/users/${admin.userId}`)).body;
    const member = await app.member(admin, 'grace@example.com');
    const others = await member.token();
    const dead = await admin.token();
    await admin.delete(`/personal-access-tokens/${dead.tokenId}`);
    const userIds = Array.from({ length: 1_201 }, () => admin.userId);
    const input = { orgId, userIds, name: 'many', scopes: 'org:read' };
    await app.services.db.transaction((tx) => addUnusableTokens(tx, app.services, input));
    const before = (await app.audit()).length;
    const origin = { requestId: 'r', network: 'local' };
    const end = { owner: { userId: admin.userId }, orgId, by: null, reason: 'why', origin };
    expect(await app.services.db.transaction((tx) => revokeTokensOf(tx, app.services, end))).toBe(1_201);

    const rows = (await app.audit()).slice(before);
    const same = { action: 'token.revoked', org_id: orgId, actor_user_id: null, actor_token_id: null, request_id: 'r' };
    expect(rows).toEqual(rows.map(() => expect.objectContaining({ ...same, details: { reason: 'why' } })));
    const stored = await app.services.db.read
      .selectFrom('personal_access_tokens')
      .where('revoke_reason', '=', 'why')
      .orderBy('id')
      .select('id')
      .execute();
    expect(new Set(rows.map(({ subject_id }) => subject_id))).toEqual(new Set(stored.map(({ id }) => id)));
    expect(rows).toHaveLength(1_201);
    expect((await others.get('/org')).status).toBe(200);
    expect(await app.services.db.transaction((tx) => revokeTokensOf(tx, app.services, end))).toBe(0);
    expect(await app.audit()).toHaveLength(before + 1_201);
    await app.close();
  });
});
