import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { readAuditEvents, selectAuditEnd } from '../../src/audit-log/audit-events.ts';
import { verifyAudit } from '../../src/audit-log/verify-audit.ts';
import { canonicalJson } from '../../src/base/canonical-json.ts';
import { migrate } from '../../src/db/schema/migrate.ts';
import { openSqlite } from '../../src/db/sqlite/sqlite.ts';
import { adaId, idOf, leaveFirstRelease, orgId } from '../support/first-release.ts';
import { TestClock } from '../support/test-clock.ts';

/** More than several batches, and no whole number of them. */
const records = 2_101;

describe('the audit log of an earlier release', () => {
  it('gets its hashes in the upgrade, keeps all that it told, and goes on from there (AUDIT-10)', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'latchkey-audit-'));
    leaveFirstRelease(dataDir, '');
    const store = new Sqlite(join(dataDir, 'latchkey.db'));
    const insert = store.prepare(
      `INSERT INTO audit_log VALUES (@sequence, @id, @sequence, NULL, 'token.created', '${adaId}', NULL, @subject, '::1', 'r', @details)`,
    );
    store.transaction(() => {
      for (let sequence = 2; sequence <= records; sequence += 1) {
        // Names that are not in order, and text of every kind.
        const details = JSON.stringify({
          scopes: ['b', 'a'],
          name: `Ä "${sequence}" \u2028`,
          inner: { z: 1, a: null },
        });
        insert.run({ sequence, id: idOf(90_000 + sequence), subject: idOf(sequence), details });
      }
    })();
    store.prepare("UPDATE counters SET value = ? WHERE name = 'audit'").run(records);
    const before = store.prepare('SELECT * FROM audit_log ORDER BY sequence').all() as Record<string, unknown>[];
    store.close();
    const db = openSqlite(dataDir);
    try {
      await migrate(db, new TestClock());
      const verdict = await verifyAudit(db);
      expect(verdict).toMatchObject({ ok: true, records, head: { sequence: records } });
      const after = await db.read.selectFrom('audit_log').orderBy('sequence').selectAll().execute();
      const parsed = (row: Record<string, unknown>) => ({ ...row, details: JSON.parse(String(row['details'])) });
      expect(after.map((row) => parsed({ ...row }))).toMatchObject(before.map(parsed));
      expect(new Set(after.map(({ salt }) => salt)).size).toBe(records);
      const told = after.map(({ details }) => details);
      expect(told).toEqual(told.map((text) => canonicalJson(JSON.parse(text))));
      expect(await selectAuditEnd(db.read)).toBe(records);
      const [first, second] = await readAuditEvents(db.read, 0, 2);
      expect(first).toMatchObject({ key: orgId, envelope: { eventType: 'org.created', sequence: 1 } });
      expect(second).toMatchObject({
        key: '',
        envelope: { timestamp: 2, payload: { outcome: 'success', subjectId: idOf(2), changes: {}, isErased: false } },
      });
      await db.transaction((tx) =>
        tx.updateTable('audit_log').set({ details: '{}' }).where('sequence', '=', 600).execute(),
      );
      expect(await verifyAudit(db)).toMatchObject({ ok: false, sequence: 600, fault: 'content' });
    } finally {
      await db.close();
      rmSync(dataDir, { recursive: true });
    }
  });
});
