import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { tablesOf, watchStatements } from './statement-watch.ts';
import { organization, TestApp } from './test-app.ts';

type Connection = Sqlite.Database;

/** The statements of the transaction of POST /org, its begin and commit included. */
async function statementsOfCreation(): Promise<string[]> {
  const app = await TestApp.start();
  const statements: string[] = [];
  let writer: Connection | null = null;
  const stop = watchStatements((sql, connection) => {
    if (sql === 'begin immediate') writer = connection;
    if (connection === writer) statements.push(sql);
    if (sql === 'commit') writer = null;
  });
  try {
    await app.setUp();
  } finally {
    stop();
    await app.close();
  }
  return statements.slice(0, statements.indexOf('commit') + 1);
}

/** Makes the statement at `place` of the next transaction fail, once. */
function failAt(place: number, failure: (writer: Connection) => Error): () => void {
  let writer: Connection | null = null;
  let seen = 0;
  return watchStatements((sql, connection) => {
    if (sql === 'begin immediate' && seen === 0) writer = connection;
    if (connection !== writer) return;
    seen += 1;
    if (seen === place) throw failure(connection);
  });
}

describe('a failure in the transaction of POST /org', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await TestApp.start();
  });
  afterEach(() => app.close());

  async function createExpecting(status: number, code: string): Promise<void> {
    const answer = await app.nobody.post('/org', organization);
    expect(answer).toMatchObject({ status, body: { error: { code } } });
    expect(answer.text).not.toMatch(/sqlite|insert|begin|disk|injected|\.ts/i);
  }

  function expectNothingStored(): void {
    for (const [table, rows] of Object.entries(tablesOf(join(app.dataDir, 'latchkey.db')))) {
      expect({ table, rows }).toEqual({ table, rows: [] });
    }
  }

  const kinds = [
    ['500 INTERNAL (a fault)', () => new Error('injected')],
    ['503 UNAVAILABLE (the disk fails)', () => new Sqlite.SqliteError('injected disk error', 'SQLITE_IOERR_WRITE')],
    [
      '503 UNAVAILABLE (the disk is full)',
      (writer: Connection) => {
        // After some failures of the disk SQLite itself has rolled back already.
        if (writer.inTransaction) writer.exec('ROLLBACK');
        return new Sqlite.SqliteError('injected full disk', 'SQLITE_FULL');
      },
    ],
  ] as const;

  it.each(kinds)(
    '%s: at whatever statement, nothing is left behind and the next try succeeds (ORG-11)',
    async (kind, failure) => {
      const [status, code = ''] = kind.split(' ');
      const statements = await statementsOfCreation();
      expect(statements.at(0)).toBe('begin immediate');
      expect(statements.length).toBeGreaterThan(20);
      for (const place of statements.keys()) {
        const stop = failAt(place + 1, failure);
        try {
          await createExpecting(Number(status), code);
        } finally {
          stop();
        }
        expectNothingStored();
      }
      const { status: created, body } = await app.nobody.post('/org', organization);
      expect(created).toBe(200);
      // No number was used up by what failed.
      expect(body.slug).toBe('org-1001');
      expect((await app.events()).map(({ sequence }) => sequence)).toEqual([1, 2]);
      expect((await app.audit()).map(({ sequence }) => sequence)).toEqual([1]);
      expect((await app.nobody.get('/org/exists')).body).toEqual({ exists: true });
    },
  );

  it('503: a full disk leaves nothing behind, and with room again the next try succeeds (ORG-11, STORE-12)', async () => {
    let writer: Connection | null = null;
    const stop = watchStatements((sql, connection) => {
      if (sql === 'begin immediate') writer = connection;
    });
    await app.services.db.transaction((tx) => tx.selectFrom('users').select('id').execute());
    stop();
    const connection = writer as Connection | null;
    if (!connection) throw new Error('no connection wrote');
    // Each table has its first page already; a row longer than a page needs more of them.
    const line = '🏠'.repeat(255);
    const permanentAddress = { addressLine1: line, city: line, state: line, country: line, postCode: line };
    const filled = { ...organization, permanentAddress };
    connection.pragma(`max_page_count = ${Number(connection.pragma('page_count', { simple: true }))}`);
    const refused = await app.nobody.post('/org', filled);
    expect(refused).toMatchObject({ status: 503, body: { error: { code: 'UNAVAILABLE' } } });
    expect(refused.headers.get('retry-after')).toBe('5');
    expectNothingStored();
    connection.pragma('max_page_count = 1000000');
    expect((await app.nobody.post('/org', filled)).status).toBe(200);
  });
});
