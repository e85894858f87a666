import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { secondConnection } from '../../test/support/second-connection.ts';
import type { StoreConnection } from '../../test/support/store-connection.ts';
import { TestApp } from '../../test/support/test-app.ts';
import { isOnPostgres } from '../../test/support/test-store.ts';
import { chainStart, contentHashOf, recordHashOf } from './chain.ts';
import { erasureMac } from './erasure-signature.ts';
import { type AuditHead, verifyAudit } from './verify-audit.ts';

const columns = 'SELECT * FROM audit_log ORDER BY sequence';

describe('the verification of the audit log', () => {
  let app: TestApp;
  let store: StoreConnection;
  let userId: string;
  // biome-ignore lint/suspicious/noExplicitAny: rows as the store has them
  let sound: readonly any[];
  beforeAll(async () => {
    app = await TestApp.start();
    const admin = await app.setUp();
    userId = admin.userId;
    for (const name of ['one', 'two', 'three', 'four', 'five']) {
      const { status } = await admin.post('/userGroups', { name, type: 'custom' });
      if (status !== 201) throw new Error(`no group: ${status}`);
    }
    store = secondConnection(app);
    sound = rows();
  });
  afterEach(() => {
    run('DELETE FROM audit_log');
    for (const row of sound) insert(row);
    run("UPDATE counters SET value = ? WHERE name = 'audit'", sound.length);
  });
  afterAll(async () => {
    store.close();
    await app.close();
  });
  const verify = (expected: AuditHead | null = null) =>
    verifyAudit(app.services.db, { expected, key: app.services.encryption });
  const run = (sql: string, ...values: unknown[]) => store.prepare(sql).run(...values);
  // biome-ignore lint/suspicious/noExplicitAny: rows as the store has them
  const rows = (): any[] => store.prepare(columns).all();
  const rowOf = (sequence: number) => rows()[sequence - 1];
  const broken = (sequence: number, fault: string) => ({ ok: false, records: expect.any(Number), sequence, fault });

  it('is passed by a log that no one touched, with the head that it has (AUDIT-10, AUDIT-11)', async () => {
    const all = rows();
    expect(all.length).toBeGreaterThan(5);
    expect(all.map(({ previous_hash }) => previous_hash)).toEqual([
      chainStart,
      ...all.slice(0, -1).map(({ hash }) => hash),
    ]);
    const head = { sequence: all.length, hash: all.at(-1).hash };
    expect(await verify()).toEqual({ ok: true, records: all.length, erased: 0, erasedSince: 0, head });
    expect(await verify(head)).toMatchObject({ ok: true });
    expect(await verify({ sequence: 3, hash: rowOf(3).hash })).toMatchObject({ ok: true });
  });

  const halfTime: [string, number] = ['occurred_at', 1.5];

  it.each<[string, string | number | null]>([
    ['occurred_at', 1],
    // PostgreSQL keeps integers only, as declared.
    ...(isOnPostgres ? [] : [halfTime]),
    ['id', '0123456789abcdef01234567'],
    ['org_id', null],
    ['action', 'group.deleted'],
    ['area', 'token'],
    ['outcome', 'failure'],
    ['actor_user_id', null],
    ['actor_token_id', '0123456789abcdef01234567'],
    ['actor_client_id', '0123456789abcdef01234567'],
    ['subject_id', null],
    ['subject_owner_id', '0123456789abcdef01234567'],
    ['request_id', 'other'],
    ['content_hash', chainStart],
    ['previous_hash', chainStart],
    ['hash', chainStart],
  ])('finds a record whose %s was edited', async (column, value) => {
    run(`UPDATE audit_log SET ${column} = ? WHERE sequence = 4`, value);
    expect(await verify()).toEqual(broken(4, 'hash'));
  });

  it.each([
    ['network', '192.0.2.1'],
    ['details', '{"name":"other"}'],
    ['details', ' {}'],
    ['changes', '{}'],
    ['salt', 'ab'],
  ])('finds a record whose %s was edited to %s', async (column, value) => {
    run(`UPDATE audit_log SET ${column} = ? WHERE sequence = 4`, value);
    expect(await verify()).toEqual(broken(4, 'content'));
  });

  it.each([[1], [4]])('finds that record %i is missing', async (sequence) => {
    run('DELETE FROM audit_log WHERE sequence = ?', sequence);
    expect(await verify()).toEqual(broken(sequence, 'missing'));
  });

  it('finds that a record is missing where the later ones were moved up', async () => {
    run('DELETE FROM audit_log WHERE sequence = 4');
    run('UPDATE audit_log SET sequence = sequence - 1 WHERE sequence > 4');
    expect(await verify()).toEqual(broken(4, 'hash'));
  });

  it('finds that the last records are missing', async () => {
    const last = rows().length;
    run('DELETE FROM audit_log WHERE sequence >= ?', last - 1);
    expect(await verify()).toEqual(broken(last - 1, 'missing-at-end'));
  });

  it('finds that all are missing', async () => {
    run('DELETE FROM audit_log');
    expect(await verify()).toEqual(broken(1, 'missing-at-end'));
  });

  /** Returns a row that continues another one, hashes included. */
  function forged(after: number, more: Readonly<Record<string, unknown>> = {}) {
    const before = rowOf(after);
    const row = { ...before, sequence: after + 1, id: 'f'.repeat(24), previous_hash: before.hash, ...more };
    row.content_hash = contentHashOf(row.salt, row);
    return { ...row, hash: recordHashOf(row) };
  }
  function insert(row: Readonly<Record<string, unknown>>): void {
    const names = Object.keys(row);
    const marks = names.map(() => '?').join();
    run(`INSERT INTO audit_log (${names.join()}) VALUES (${marks})`, ...Object.values(row));
  }
  function write(row: Readonly<Record<string, unknown>>): void {
    run('DELETE FROM audit_log WHERE sequence = ?', row['sequence']);
    insert(row);
  }

  it('finds a record that was put in, whatever its hash, and those after it moved', async () => {
    const row = forged(4);
    run('UPDATE audit_log SET sequence = -sequence WHERE sequence > 4');
    run('UPDATE audit_log SET sequence = 1 - sequence WHERE sequence < 0');
    insert(row);
    expect(await verify()).toEqual(broken(6, 'hash'));
  });

  it('finds a record that was put in before the first and after the last', async () => {
    insert(forged(rows().length));
    expect(await verify()).toEqual(broken(rows().length, 'surplus'));
    run('DELETE FROM audit_log WHERE id = ?', 'f'.repeat(24));
    insert({ ...forged(1), sequence: 0 });
    expect(await verify()).toEqual(broken(0, 'surplus'));
  });

  it('finds two records that were swapped', async () => {
    run('UPDATE audit_log SET sequence = -4 WHERE sequence = 4');
    run('UPDATE audit_log SET sequence = 4 WHERE sequence = 5');
    run('UPDATE audit_log SET sequence = 5 WHERE sequence = -4');
    expect(await verify()).toEqual(broken(4, 'hash'));
  });

  it('finds a record that was rewritten with a hash that is right: the next does not go on from it', async () => {
    write(forged(3, { id: rowOf(4).id, subject_id: userId }));
    expect(await verify()).toEqual(broken(5, 'link'));
  });

  it('finds a record that was taken from elsewhere and given a hash that is right', async () => {
    const row = { ...rowOf(4), previous_hash: rowOf(2).hash };
    write({ ...row, hash: recordHashOf(row) });
    expect(await verify()).toEqual(broken(4, 'link'));
  });

  it('cannot tell of a log that was rewritten to its end; a head that was noted earlier does (AUDIT-11)', async () => {
    const [noted, early] = [rowOf(5), rowOf(3)];
    for (const { sequence, id } of rows().slice(3)) write(forged(sequence - 1, { id, network: '192.0.2.1' }));
    expect(await verify()).toMatchObject({ ok: true });
    expect(await verify({ sequence: 3, hash: early.hash })).toMatchObject({ ok: true });
    expect(await verify({ sequence: 5, hash: noted.hash })).toEqual(broken(5, 'expectation'));
  });

  it('finds that a log that was cut off, counter and all, does not reach the head that was noted (AUDIT-11)', async () => {
    const last = rows().at(-1);
    run('DELETE FROM audit_log WHERE sequence = ?', last.sequence);
    run("UPDATE counters SET value = value - 1 WHERE name = 'audit'");
    expect(await verify()).toMatchObject({ ok: true });
    expect(await verify(last)).toEqual(broken(last.sequence, 'missing-at-end'));
  });

  it('finds content that was taken away without a record of an erasure, in whole or in part (AUDIT-14)', async () => {
    run("UPDATE audit_log SET network = '', details = '{}', changes = '{}', salt = NULL WHERE sequence = 4");
    expect(await verify()).toEqual(broken(4, 'erased'));
    run("UPDATE audit_log SET network = 'x' WHERE sequence = 4");
    expect(await verify()).toEqual(broken(4, 'content'));
  });

  it('finds content that was parted elsewhere, so that the same text stands for something else', async () => {
    const { details, changes, salt, network } = rowOf(6);
    const [head = '', ...rest] = details.split(',');
    run('UPDATE audit_log SET details = ?, changes = ? WHERE sequence = 6', head, `${rest.join(',')},${changes}`);
    expect(await verify()).toEqual(broken(6, 'content'));
    run('UPDATE audit_log SET details = ?, changes = ? WHERE sequence = 6', details, changes);
    expect(await verify()).toMatchObject({ ok: true });
    run('UPDATE audit_log SET salt = ?, network = ? WHERE sequence = 6', salt.slice(1), network);
    expect(await verify()).toEqual(broken(6, 'content'));
  });

  it('goes on being passed by what is written afterwards, from several at once', async () => {
    const clients = await Promise.all([1, 2, 3].map(() => app.signIn('ada@example.com')));
    const made = clients.flatMap((client, one) =>
      [1, 2, 3].map((two) => client.post('/userGroups', { name: `${one}-${two}`, type: 'custom' })),
    );
    for (const { status } of await Promise.all(made)) expect(status).toBe(201);
    expect(await verify()).toMatchObject({ ok: true, records: rows().length });
  });

  it('tells of a record that is missing, and the service goes on writing', async () => {
    const admin = await app.signIn('ada@example.com');
    const last = rows().length;
    run('DELETE FROM audit_log WHERE sequence = ?', last);
    expect((await admin.post('/userGroups', { name: 'six', type: 'custom' })).status).toBe(201);
    expect(await verify()).toEqual(broken(last, 'missing'));
  });

  describe('erased records (AUDIT-18)', () => {
    const blank = "SET network = '', details = '{}', changes = '{}', salt = NULL";
    const noted = () => rows().at(-1);
    let other: string;
    beforeAll(async () => {
      const { body } = await (await app.signIn('ada@example.com')).post('/users', {
        fullName: 'B',
        email: 'b@example.com',
      });
      other = body._id;
      const name = "full_name = 'Erased user', is_deleted = 1";
      run(`UPDATE users SET ${name}, email = ? WHERE id = ?`, `Erased-${other}@erased.invalid`, other);
      run('DELETE FROM group_members WHERE user_id = ?', other);
      sound = rows();
    });
    afterEach(() => {
      run('UPDATE users SET erased_at = NULL');
      run('DELETE FROM audit_erasures');
    });

    /** Appends a record of an erasure, hashes, counter, signature and all; answers what was blanked behind it. */
    function forgeErasure(ofUser: string, records?: number): number {
      const about = 'sequence < ? AND (actor_user_id = ? OR subject_id = ?) AND salt IS NOT NULL';
      const { changes } = store
        .prepare(`UPDATE audit_log ${blank} WHERE ${about}`)
        .run(noted().sequence + 1, ofUser, ofUser);
      const details = JSON.stringify({ events: 0, records: records ?? changes });
      const [area, salt] = ['user', '0'.repeat(32)];
      const act = { action: 'user.erased', area, actor_user_id: null, subject_id: ofUser, subject_owner_id: null };
      insert(forged(rows().length, { ...act, id: 'e'.repeat(24), details, changes: '{}', network: 'local', salt }));
      run("UPDATE counters SET value = value + 1 WHERE name = 'audit'");
      run('DELETE FROM audit_erasures');
      const { sequence, hash } = noted();
      run(
        'INSERT INTO audit_erasures VALUES (?, ?, 1)',
        sequence,
        erasureMac(app.services.encryption, { sequence, hash }),
      );
      return changes;
    }

    it('finds content taken away behind a forged erasure of a user who is there, with an honest head and without', async () => {
      const head = noted();
      expect(forgeErasure(userId)).toBeGreaterThan(3);
      for (const expected of [null, head]) expect(await verify(expected)).toMatchObject({ ok: false, fault: 'erased' });
    });

    it('counts those of a user who is erased, and tells how many were erased since the head was noted', async () => {
      const head = noted();
      run('UPDATE users SET erased_at = 1 WHERE id = ?', other);
      const records = forgeErasure(other);
      expect(await verify(head)).toMatchObject({ ok: true, erased: records, erasedSince: records });
      expect(await verify()).toMatchObject({ ok: true, erased: records, erasedSince: 0 });
      expect(await verify(noted())).toMatchObject({ ok: true, erased: records, erasedSince: 0 });
    });

    it('finds what is about no one who is erased, and an erasure of more or fewer records than it says', async () => {
      run('UPDATE users SET erased_at = 1 WHERE id = ?', other);
      const records = forgeErasure(other);
      run(`UPDATE audit_log ${blank} WHERE sequence = 2`);
      expect(await verify()).toEqual(broken(2, 'erased'));
      for (const said of [records - 1, records + 1]) {
        run('DELETE FROM audit_log');
        for (const row of sound) insert(row);
        run("UPDATE counters SET value = ? WHERE name = 'audit'", sound.length);
        forgeErasure(other, said);
        expect(await verify()).toEqual(broken(sound.length + 1, 'erasure'));
      }
    });

    it('finds an erasure whose own record was blanked', async () => {
      run('UPDATE users SET erased_at = 1 WHERE id = ?', other);
      forgeErasure(other);
      run(`UPDATE audit_log ${blank} WHERE action = 'user.erased'`);
      expect(await verify()).toMatchObject({ ok: false, fault: 'erased' });
    });

    it('counts those of users who went with the whole organization', async () => {
      run('UPDATE users SET erased_at = 1 WHERE id = ?', other);
      const records = forgeErasure(other);
      run('UPDATE audit_log SET subject_id = subject_id WHERE sequence = 1');
      const gone = store.prepare('SELECT * FROM users WHERE id = ?').get(other);
      run('DELETE FROM users WHERE id = ?', other);
      expect(await verify()).toMatchObject({ ok: false, fault: 'erased' });
      const act = { action: 'org.purged', area: 'org', subject_id: null, id: 'd'.repeat(24) };
      insert(forged(rows().length, act));
      run("UPDATE counters SET value = value + 1 WHERE name = 'audit'");
      expect(await verify()).toMatchObject({ ok: true, erased: records });
      const names = Object.keys(gone);
      run(`INSERT INTO users (${names.join()}) VALUES (${names.map(() => '?').join()})`, ...Object.values(gone));
    });
  });
});
