import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { secondConnection } from '../../../test/support/second-connection.ts';
import { actAhead } from '../../../test/support/statement-watch.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

/** Reads CSV as RFC 4180 has it, and takes back what keeps spreadsheets from calculating. */
function readCsv(text: string): Record<string, string>[] {
  const rows: string[][] = [[]];
  for (const [, quoted, bare, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    rows.at(-1)?.push((quoted?.replaceAll('""', '"') ?? bare ?? '').replace(/^'(?=[=+\-@\t\r])/, ''));
    if (end === '\r\n') rows.push([]);
  }
  const [header = [], ...records] = rows.slice(0, -1);
  return records.map((cells) => Object.fromEntries(header.map((name, place) => [name, cells[place] ?? ''])));
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/**
 * Runs the verification of an export from docs/guides/operate.md, and nothing else of the product. Returns the broken
 * records.
 */
function verifyExport(text: string): number[] {
  const records = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const hashes = new Map(records.map(({ sequence, hash }) => [sequence, hash]));
  const sorted = (value: Json): Json => {
    if (Array.isArray(value)) return value.map(sorted);
    if (value === null || typeof value !== 'object') return value;
    const names = Object.keys(value).sort();
    return Object.fromEntries(names.map((name) => [name, sorted(value[name])]));
  };
  return records.flatMap((r) => {
    const content = `${r.salt}${JSON.stringify([r.network, sorted(r.details), sorted(r.changes)])}`;
    const who = [r.actor.userId, r.actor.tokenId, r.actor.clientId, r.subjectId, r.subjectOwnerId];
    const what = [r.sequence, r.id, r.timestamp, r.orgId, r.action, r.outcome];
    const chained = ['latchkey-audit-1', r.previousHash, ...what, ...who, r.requestId, r.contentHash];
    const isSound =
      (r.isErased || sha256(content) === r.contentHash) &&
      sha256(JSON.stringify(chained)) === r.hash &&
      (hashes.get(r.sequence - 1) ?? r.previousHash) === r.previousHash;
    return isSound ? [] : [r.sequence];
  });
}

describe('GET /audit/export', () => {
  let app: TestApp;
  let admin: Client;
  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    await admin.post('/userGroups', { name: '=1+1, "quoted"\u2028', type: 'custom' });
    await admin.patch('/org', { shortName: '@SUM(A1)' }, { headers: { 'x-request-id': '-2:x' } });
    await app.signInTokens('ada@example.com', 'Wrong-Horse-1');
    // Recorded behind its answer.
    await vi.waitUntil(async () => (await app.audit()).at(-1).action === 'sign-in.refused');
  });
  afterAll(() => app.close());
  const lines = (text: string): Json[] =>
    text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));

  it('200: JSON Lines, oldest first, with all that verification takes (AUDIT-13)', async () => {
    const { status, headers, text } = await admin.get('/audit/export');
    expect([status, headers.get('content-type')]).toEqual([200, 'application/jsonl; charset=utf-8']);
    const records = lines(text);
    const rows = await app.audit();
    expect(records.map(({ hash }) => hash)).toEqual(rows.map(({ hash }) => hash));
    const responded = (await admin.get('/audit?limit=200')).body.records;
    for (const { salt, contentHash, previousHash, ...record } of records) {
      expect(responded).toContainEqual(record);
      const row = rows[record.sequence - 1];
      expect([salt, contentHash, previousHash]).toEqual([row.salt, row.content_hash, row.previous_hash]);
    }
  });

  it('200: is verified by a few lines that know nothing of the store; broken twins are caught (AUDIT-10, AUDIT-13)', async () => {
    const { text } = await admin.get('/audit/export');
    expect(lines(text).length).toBeGreaterThan(3);
    expect(verifyExport(text)).toEqual([]);
    expect(verifyExport(text.replace('"@SUM(A1)"', '"@SUM(A2)"'))).toHaveLength(1);
    expect(verifyExport(text.replace('"action":"group.created"', '"action":"group.deleted"'))).toHaveLength(1);
    const [first = '', second = '', third = '', ...rest] = text.trim().split('\n');
    const other = JSON.stringify({ ...JSON.parse(second), previousHash: JSON.parse(third).hash });
    expect(verifyExport([first, other, third, ...rest].join('\n'))).toEqual([2]);
  });

  it('200: CSV with a header, cells that spreadsheets would calculate made harmless (AUDIT-13)', async () => {
    const { status, headers, text } = await admin.get('/audit/export?format=csv');
    expect([status, headers.get('content-type')]).toEqual([200, 'text/csv; charset=utf-8']);
    const [header] = text.split('\r\n');
    expect(header).toBe(
      'sequence,id,timestamp,action,outcome,orgId,actorUserId,actorTokenId,actorClientId,subjectId,subjectKind,subjectOwnerId,network,requestId,details,changes,isErased,salt,contentHash,previousHash,hash',
    );
    expect(text).toContain(",'-2:x,");
    expect(text).not.toMatch(/(?:^|,|\n)"?[=+@-]/);
    const records = lines((await admin.get('/audit/export')).text);
    expect(readCsv(text)).toEqual(
      records.map(({ actor, details, changes, isErased, ...rest }) => ({
        ...Object.fromEntries(Object.entries(rest).map(([name, value]: [string, Json]) => [name, String(value ?? '')])),
        actorUserId: actor.userId ?? '',
        actorTokenId: actor.tokenId ?? '',
        actorClientId: actor.clientId ?? '',
        details: JSON.stringify(details),
        changes: JSON.stringify(changes),
        isErased: String(isErased),
      })),
    );
  });

  it('200: the same filters as the list; without a match JSON Lines are empty, and CSV has its header alone', async () => {
    const { text } = await admin.get('/audit/export?action=group.');
    expect(lines(text).map(({ action }) => action)).toEqual(['group.created']);
    const nothing = `actor=${'0'.repeat(24)}`;
    expect((await admin.get(`/audit/export?${nothing}`)).text).toBe('');
    expect((await admin.get(`/audit/export?${nothing}&format=csv`)).text).toMatch(/^sequence,[\w,]+,hash\r\n$/);
    expect((await admin.get('/audit/export?format=xml')).body.error.code).toBe('VALIDATION_ERROR');
  });

  it('200: thousands of records, each once, and none that was written after it began (AUDIT-13)', async () => {
    const records = Array.from({ length: 2_500 }, () => ({ name: 'x' }));
    const { db } = app.services;
    const { appendAudit } = await import('../../audit-log/audit-log.ts');
    const orgId = (await admin.get('/org')).body._id;
    const origin = { requestId: 'many', network: '127.0.0.1' };
    const many = records.map(
      (details) => ({ action: 'group.renamed', orgId, actor: null, subjectId: null, origin, details }) as const,
    );
    await db.transaction((tx) => appendAudit(tx, app.services, ...many));
    const count = (await app.audit()).length;
    const exported = lines((await admin.get('/audit/export')).text);
    expect(exported.map(({ sequence }) => sequence)).toEqual(Array.from({ length: count }, (_, place) => place + 1));
    expect(verifyExport((await admin.get('/audit/export')).text)).toEqual([]);
    const { exportAudit } = await import('../../audit-log/export-audit.ts');
    let written = 0;
    const parts = exportAudit(db.read, { filter: { orgId }, format: 'jsonl' }, async (done) => {
      written = done;
      await admin.patch('/org', { shortName: `N${done}` });
    });
    for await (const part of parts) expect(part.endsWith('\n')).toBe(true);
    expect(written).toBe(count);
    expect((await app.audit()).length).toBeGreaterThan(count);
  });

  it('ends when anyone who reads it is no administrator any more', async () => {
    const other = await app.member(admin, 'grace@example.com');
    const [group] = (await admin.get('/userGroups?search=admin')).body.groups;
    await admin.post('/userGroups/add-users', { userIds: [other.userId], groupIds: [group._id] });
    const stop = actAhead(/from "audit_log".* order by "occurred_at" asc, "sequence" asc/, 2, () => {
      const store = secondConnection(app);
      store.prepare('DELETE FROM group_members WHERE user_id = ?').run(other.userId);
      store.close();
    });
    await expect(other.get('/audit/export')).rejects.toThrow('terminated');
    expect(stop()).toBe(true);
  });
});
