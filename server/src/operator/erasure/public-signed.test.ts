import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { secondConnection } from '../../../test/support/second-connection.ts';
import type { StoreConnection } from '../../../test/support/store-connection.ts';
import { type Client, TestApp } from '../../../test/support/test-app.ts';
import { contentHashOf, recordHashOf } from '../../audit-log/chain.ts';
import { type AuditHead, verifyAudit } from '../../audit-log/verify-audit.ts';
import { selectRemainingUsers } from '../../db/members/erasure-traces.ts';
import { encryptionKeyFile, encryptionWith, makeEncryptionKey, readEncryptionKey } from '../../keys/encryption.ts';
import { encryptAnew } from '../../keys/rotate-encryption.ts';
import { eraseUser, findUnsignedErasures, signErasures } from './public.ts';

const origin = { requestId: 'operator', network: 'local' };
const blank = "UPDATE audit_log SET network = '', details = '{}', changes = '{}', salt = NULL";

describe('the signature of an erasure (AUDIT-20)', () => {
  let app: TestApp;
  let admin: Client;
  let store: StoreConnection;
  let erasedId: string;
  let head: AuditHead;
  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    const { userId } = await app.member(admin, 'grace@example.com');
    await admin.delete(`/users/${userId}`);
    erasedId = userId;
    store = secondConnection(app);
  });
  afterAll(async () => {
    store.close();
    await app.close();
  });
  const run = (sql: string, ...values: unknown[]) => store.prepare(sql).run(...values);
  const verify = (key: typeof app.services.encryption | null = app.services.encryption) =>
    verifyAudit(app.services.db, { expected: head, key });
  const last = () => store.prepare('SELECT * FROM audit_log ORDER BY sequence DESC LIMIT 1').get();
  const notSigned = () => findUnsignedErasures(app.services.db.read, app.services.encryption);
  const sign = async () => {
    const sequences = (await notSigned()).map(({ sequence }) => sequence);
    return signErasures(app.services, { sequences, origin });
  };

  describe('that the operator ran', () => {
    let sequence: number;
    beforeAll(async () => {
      const done = await eraseUser(app.services, { userId: erasedId, origin });
      if (typeof done === 'string') throw new Error(done);
      const erasure = last();
      sequence = erasure.sequence;
      head = { sequence, hash: erasure.hash };
    });
    afterEach(() => {
      run('UPDATE users SET is_deleted = 1 WHERE id = ?', erasedId);
      run('DELETE FROM group_members WHERE user_id = ?', erasedId);
    });

    it('is proved with the key; without it, it is believed, and that is told', async () => {
      expect(await verify()).toMatchObject({ ok: true });
      expect(await verify()).not.toHaveProperty('unproved');
      expect(await verify(null)).toMatchObject({ ok: true, unproved: 1 });
      expect(await notSigned()).toEqual([]);
    });

    it('is proved with another key after that was changed, and no longer with the one before', async () => {
      const from = app.services.config.encryptionKey ?? readEncryptionKey(join(app.dataDir, encryptionKeyFile));
      const to = makeEncryptionKey();
      expect(await encryptAnew(app.services, { from, to }, origin)).toMatchObject({ unreadable: 0 });
      expect(await verify(encryptionWith(to))).toMatchObject({ ok: true });
      expect(await verify()).toMatchObject({ ok: false, sequence, fault: 'forged' });
      await encryptAnew(app.services, { from: to, to: from }, origin);
      expect(await verify()).toMatchObject({ ok: true });
    });

    it.each([
      ['is_deleted', 'UPDATE users SET is_deleted = 0 WHERE id = ?'],
      ['group_members', "INSERT INTO group_members SELECT id, ? FROM user_groups WHERE type = 'admin'"],
    ])('is reported where the user has something left: %s', async (trace, sql) => {
      run(sql, erasedId);
      expect(await selectRemainingUsers(app.services.db.read)).toEqual([{ userId: erasedId, traces: [trace] }]);
      expect(await verify()).toMatchObject({ ok: false, sequence, fault: 'remaining' });
    });

    it('is missing on a record of an earlier release, until the operator signs it, of which there is a record', async () => {
      run('DELETE FROM audit_erasures');
      for (const key of [app.services.encryption, null]) {
        expect(await verify(key)).toMatchObject({ ok: false, sequence, fault: 'unsigned' });
      }
      expect(await notSigned()).toMatchObject([{ sequence, userId: erasedId, isErased: true }]);
      expect(await signErasures(app.services, { sequences: [], origin })).toBe(0);
      expect(await sign()).toBe(1);
      expect(await verify()).toMatchObject({ ok: true });
      const details = { count: 1, records: [String(sequence)] };
      expect((await app.audit()).at(-1)).toMatchObject({ action: 'audit.erasures-signed', details });
      expect(await sign()).toBe(0);
    });
  });

  describe('that a writer to the store without the key makes up, of an administrator who lives', () => {
    let sequence: number;
    beforeEach(() => {
      const before = last();
      sequence = before.sequence + 1;
      head = { sequence: before.sequence, hash: before.hash };
      run('UPDATE users SET erased_at = 1 WHERE id = ?', admin.userId);
      const about = 'salt IS NOT NULL AND (actor_user_id = ? OR subject_id = ? OR subject_owner_id = ?)';
      const { changes } = run(`${blank} WHERE ${about}`, admin.userId, admin.userId, admin.userId);
      if (changes === 0) throw new Error('nothing was blanked');
      const act = { action: 'user.erased', area: 'user', actor_user_id: null, subject_id: admin.userId };
      const content = { network: 'local', details: JSON.stringify({ events: 0, records: changes }), changes: '{}' };
      const salt = '0'.repeat(32);
      const ids = { id: 'e'.repeat(24), sequence, previous_hash: before.hash, salt };
      const row = { ...before, ...act, ...content, ...ids, subject_owner_id: null };
      row.content_hash = contentHashOf(salt, row);
      row.hash = recordHashOf(row);
      const names = Object.keys(row);
      run(`INSERT INTO audit_log (${names.join()}) VALUES (${names.map(() => '?').join()})`, ...Object.values(row));
      run("UPDATE counters SET value = ? WHERE name = 'audit'", sequence);
    });

    it('is missing, also where that of another erasure is put in its place, and is not signed afterwards', async () => {
      expect(await verify()).toMatchObject({ ok: false, sequence, fault: 'unsigned' });
      expect(await verify(null)).toMatchObject({ ok: false, sequence, fault: 'unsigned' });
      run('INSERT INTO audit_erasures SELECT ?, mac, signed_at FROM audit_erasures', sequence);
      expect(await verify()).toMatchObject({ ok: false, sequence, fault: 'forged' });
      expect(await verify(null)).toMatchObject({ ok: false, sequence, fault: 'remaining' });
      expect(await notSigned()).toMatchObject([{ sequence, userId: admin.userId, isErased: false }]);
      expect(await sign()).toBe(0);
      expect(await verify()).toMatchObject({ ok: false, sequence, fault: 'forged' });
    });
  });
});
