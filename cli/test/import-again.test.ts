import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { secondConnection } from '../../server/test/support/second-connection.ts';
import { ensureServerIsBuilt } from '../../server/test/support/server-process.ts';
import { tablesOf } from '../../server/test/support/statement-watch.ts';
import type { Json, TestApp } from '../../server/test/support/test-app.ts';
import { testStore } from '../../server/test/support/test-store.ts';
import { runImport } from '../src/import/run-import.ts';
import { stageDump } from '../src/import/stage-dump.ts';
import { root } from './command-process.ts';
import { group, imported, type Line, newOrganization, startNow, token, toLines, user } from './import-world.ts';

beforeAll(ensureServerIsBuilt);

/** Returns the content of a store, without what differs in each run: numbers, times and ids of records, salts. */
function contentOf(app: TestApp): Json {
  const tables = tablesOf(app) as Record<string, Json[]>;
  const rows = (table: string, columns: readonly string[]) =>
    (tables[table] ?? []).map((row) => JSON.stringify(columns.map((column) => row[column]))).sort();
  return {
    users: rows('users', ['id', 'slug', 'email', 'full_name', 'is_deleted', 'has_logged_in', 'updated_at']),
    groups: rows('user_groups', ['slug', 'name', 'type', 'is_system', 'is_deleted']),
    members: (tables['group_members'] ?? []).length,
    tokens: rows('personal_access_tokens', ['id', 'hash', 'user_id', 'scopes', 'expires_at', 'revoked_at']),
    events: rows('outbox', ['sequence', 'event_type', 'payload']),
    acts: rows('audit_log', ['action', 'subject_id', 'details']).filter((row) => !row.includes('group.members')),
    joined: (tables['audit_log'] ?? [])
      .filter(({ action }) => action === 'group.members-added')
      .flatMap(({ subject_id: id, details }): string[] =>
        JSON.parse(details).userIds.map((userId: string) => `${id} ${userId}`),
      )
      .sort(),
  };
}

describe('an import that is run again', () => {
  it('after a kill half way leads to the same as one run (CLI-19, STORE-1)', async () => {
    const users = Array.from({ length: 1_500 }, (_, place) => place + 2);
    const lines = [
      ...newOrganization,
      ...users.map((number) => user(number)),
      group(0x70_0000, users),
      ...users.map((number) => token(0x10_0000 + number, number)),
      ...users.map((number) => token(0x20_0000 + number, number)),
    ];
    const [whole, killed] = [await startNow(), await startNow()];
    const store = secondConnection(killed);
    try {
      await imported(whole, ['dump'], toLines(lines));
      const file = join(killed.dataDir, 'killed.jsonl');
      writeFileSync(file, toLines(lines));
      const rowsIn = (table: string) => Number(store.prepare(`SELECT count(*) FROM ${table}`).pluck().get());
      const reachedNext = [() => rowsIn('users') > 1, () => rowsIn('personal_access_tokens') > 0];
      for (const reached of reachedNext) {
        const program = join(root, 'dist/bin/latchkey.js');
        const child = spawn(process.execPath, [program, 'import', 'dump', file], {
          env: { PATH: process.env['PATH'] ?? '', ...(await testStore(killed.dataDir)), DATA_DIR: killed.dataDir },
          stdio: 'ignore',
        });
        const ended = once(child, 'exit');
        await vi.waitUntil(() => reached() || child.exitCode !== null, { timeout: 60_000, interval: 1 });
        child.kill('SIGKILL');
        expect(await ended).toEqual([null, 'SIGKILL']);
      }
      expect(rowsIn('personal_access_tokens')).toBeLessThan(2 * users.length);
      expect(await imported(killed, ['dump'], toLines(lines))).toMatchObject({ changed: true });
      expect(contentOf(killed)).toEqual(contentOf(whole));
      expect(await imported(killed, ['dump'], toLines(lines))).toMatchObject({ changed: false });
    } finally {
      store.close();
      await whole.close();
      await killed.close();
    }
  }, 120_000);

  const someTime = fc.constantFrom('2026-01-02T03:04:05.678Z', '2026-02-02T00:00:00Z', '2026-03-03T00:00:00Z');
  const someUser = fc
    .record({
      number: fc.integer({ min: 2, max: 6 }),
      email: fc.constantFrom('a@example.com', 'b@example.com', 'c@example.com', 'not one'),
      fullName: fc.constantFrom('Grace', 'Ada', ''),
      isDeleted: fc.boolean(),
      hasLoggedIn: fc.boolean(),
      updatedAt: someTime,
    })
    .map(({ number, ...more }) => user(number, more));
  const someGroup = fc
    .record({
      number: fc.integer({ min: 0x30, max: 0x32 }),
      users: fc.array(fc.integer({ min: 1, max: 7 }), { maxLength: 3 }),
      name: fc.constantFrom('Research', 'research', 'Ops'),
      isDeleted: fc.boolean(),
    })
    .map(({ number, users, ...more }) => group(number, users, more));
  const someToken = fc
    .record({
      number: fc.integer({ min: 0x40, max: 0x44 }),
      owner: fc.integer({ min: 1, max: 7 }),
      isRevoked: fc.boolean(),
      expiresAt: fc.constantFrom('Never', '2099-01-01T00:00:00Z', '2020-01-01T00:00:00Z', 'soon'),
      parentId: fc.constantFrom(null, '40'.padStart(24, '0')),
    })
    .map(({ number, owner, ...more }) => token(number, owner, more));
  const someDump = fc.array(fc.oneof(someUser, someGroup, someToken), { maxLength: 12 });

  it('changes nothing, whatever stands in the file and whatever was there before (CLI-19)', async () => {
    await fc.assert(
      fc.asyncProperty(someDump, someDump, async (before, after) => {
        const app = await startNow();
        try {
          const run = async (lines: readonly Line[]) => {
            const file = join(app.dataDir, 'import.jsonl');
            writeFileSync(file, toLines(lines));
            const input = {
              file,
              isDry: false,
              isSkippingInvalid: true,
              isMakingGroups: false,
              mayCreateOrganization: true,
            };
            const progress = () => {};
            const context = { progress };
            const stage: Parameters<typeof runImport>[2]['stage'] = (staging) => stageDump(file, staging, progress);
            return (await runImport(app.services.config, context, { ...input, stage })).data as Json;
          };
          await run([...newOrganization, ...before]);
          await run(after);
          const stored = tablesOf(app);
          const again = await run(after);
          expect(again.changed).toBe(false);
          expect(tablesOf(app)).toEqual(stored);
        } finally {
          await app.close();
        }
      }),
      { numRuns: 12 },
    );
  }, 120_000);
});
