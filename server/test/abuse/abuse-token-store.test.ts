import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toTimestamp } from '../../src/base/clock.ts';
import { hashCredential } from '../../src/base/secret.ts';
import { compileStatement } from '../../src/db/statement.ts';
import { selectTokenByHash } from '../../src/features/tokens/token-store.ts';
import { claimsOf } from '../support/jwt.ts';
import { secondConnection } from '../support/second-connection.ts';
import { planOf } from '../support/store-plans.ts';
import { addTrigger, dropTrigger, refusing } from '../support/store-trigger.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const path = '/personal-access-tokens';

describe('K9: revoked, then started again', () => {
  it('is still revoked, and so is what descends from it; the rest goes on (PAT-16, SCOPE-24, AUTH-31)', async () => {
    const first = await TestApp.start();
    const admin = await first.setUp();
    const [revoked, kept] = [await admin.token(), await admin.token()];
    const child = await revoked.token();
    await admin.delete(`${path}/${revoked.tokenId}`, { reason: 'lost' });
    await first.stop();
    const app = await TestApp.start({ DATA_DIR: first.dataDir }, first.clock);
    for (const { credential } of [revoked, child]) {
      const { status, body } = await app.with(credential).get('/org');
      expect([status, body.error.code]).toEqual([401, 'TOKEN_REVOKED']);
    }
    for (const { credential } of [kept, admin]) expect((await app.with(credential).get('/org')).status).toBe(200);
    expect((await app.with(admin.credential).delete(`${path}/${revoked.tokenId}`)).status).toBe(404);
    const { body } = await app.with(admin.credential).get(`${path}/admin?status=revoked`);
    expect(body.data.map(({ revokeReason }: { revokeReason: string }) => revokeReason)).toEqual(['lost', 'lost']);
    await app.close();
  });
});

describe('K11: lastUsedAt cannot be written', () => {
  it('the request succeeds, a warning is logged, and the use is written later (PAT-31)', async () => {
    const app = await TestApp.start();
    const admin = await app.setUp();
    const token = await admin.token();
    const connection = secondConnection(app);
    const trigger = {
      name: 'disk_full',
      on: 'BEFORE UPDATE OF last_used_at ON personal_access_tokens',
      does: refusing('no space left on device'),
    };
    addTrigger(connection, trigger);
    const usedAt = app.clock.now();
    expect((await token.get('/org')).status).toBe(200);
    const told = () => app.logLines.filter((line) => line.includes('the last use of tokens could not be written'));
    await expect.poll(told, { timeout: 15_000, interval: 20 }).toHaveLength(1);
    expect(JSON.parse(told()[0] ?? '')).toMatchObject({ level: 40, err: { message: 'no space left on device' } });
    app.clock.advance(5_000);
    expect((await admin.get('/org')).status).toBe(200);
    expect((await app.services.metrics.expose()).text).toContain('latchkey_faults_total{kind="last-used"} 1');
    expect((await admin.get(path)).body.tokens[0].lastUsedAt).toBeNull();
    dropTrigger(connection, trigger);
    await app.stop();
    const lastUsedAt = connection.prepare('SELECT last_used_at FROM personal_access_tokens').pluck().get();
    connection.close();
    expect(lastUsedAt).toBe(usedAt);
    await app.close();
  });
});

describe('K12: a hundred thousand tokens of one person', () => {
  const seeded = 100_000;
  let app: TestApp;
  let admin: Client;
  let own: Client;
  const raw = (place: number) => `seeded-${place}`;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    own = await admin.token();
    app.clock.advance(1_000);
    const created_at = app.clock.now();
    const hex = (value: number) => value.toString(16).padStart(12, '0');
    const owner = { org_id: String(claimsOf(admin.credential ?? '')['orgId']), user_id: admin.userId };
    const row = (place: number) => ({
      id: hex(created_at) + hex(place),
      hash: hashCredential(raw(place)),
      ...owner,
      name: `seeded ${place}`,
      name_key: `seeded ${place}`,
      scopes: 'org:read token:read',
      created_at,
    });
    await app.services.db.transaction(async (tx) => {
      for (let place = 0; place < seeded; place += 1_000) {
        const rows = Array.from({ length: 1_000 }, (_, more) => row(place + more));
        await tx.insertInto('personal_access_tokens').values(rows).execute();
      }
    });
  });
  afterAll(() => app.close());

  it('verification finds each by one index, none by looking through them', async () => {
    const { sql } = compileStatement(selectTokenByHash, app.services.db.read);
    const connection = secondConnection(app);
    const { scans, text } = planOf(connection, sql.replace('$1', '?'));
    connection.close();
    expect(scans).toEqual([]);
    expect(text).toMatch(/^SEARCH t USING INDEX .*\(hash=\?\)$|^Index Scan personal_access_tokens t .*hash = /m);
  });

  it('200: any of them works, as fast as a token among few (AUTH-25)', async () => {
    const timed = async (call: () => Promise<{ status: number }>) => {
      const startedMs = performance.now();
      expect((await call()).status).toBe(200);
      return performance.now() - startedMs;
    };
    const median = (times: number[]) => times.sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0;
    const small = await TestApp.start();
    const few = await (await small.setUp()).token();
    const fewMs: number[] = [];
    const manyMs: number[] = [];
    for (let call = 0; call < 40; call += 1) {
      fewMs.push(await timed(() => few.get('/org')));
      manyMs.push(await timed(() => app.with(raw(call * 997)).get('/org')));
    }
    await small.close();
    expect(median(manyMs)).toBeLessThan(median(fewMs) * 3 + 2);
  });

  it('200: the lists stay lists of a hundred, newest first (PAT-11, PAT-19)', async () => {
    const { body } = await admin.get(path);
    expect(body.tokens).toHaveLength(100);
    expect(body.tokens[0].name).toBe(`seeded ${seeded - 1}`);
    const all = await admin.get(`${path}/admin?page=1001`);
    expect(all.body.pagination).toEqual({ page: 1001, limit: 100, total: seeded + 1, totalPages: 1001 });
    expect(all.body.data.map(({ id }: { id: string }) => id)).toEqual([claimsOf(own.credential ?? '')['jti']]);
  });

  it('201: one more is made and works; revoking it leaves the others alone (PAT-9, PAT-13)', async () => {
    const more = await admin.token();
    expect((await more.get('/org')).status).toBe(200);
    expect((await admin.delete(`${path}/${more.tokenId}`)).status).toBe(200);
    const { body } = await admin.get(`${path}/admin?status=revoked`);
    expect(body.data.map(({ revokedAt }: { revokedAt: string }) => revokedAt)).toEqual([toTimestamp(app.clock.now())]);
    expect((await app.with(raw(seeded - 1)).get('/org')).status).toBe(200);
  });
});
