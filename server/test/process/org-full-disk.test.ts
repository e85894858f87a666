import type Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { tablesOf, watchSqlite } from '../support/statement-watch.ts';
import { organization, TestApp } from '../support/test-app.ts';

describe('a disk without room in the transaction of POST /org', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await TestApp.start();
  });
  afterEach(() => app.close());

  it('503: a full disk leaves nothing behind, and with room again the next try succeeds (ORG-11, STORE-12)', async () => {
    let writer: Sqlite.Database | null = null;
    const stop = watchSqlite((sql, connection) => {
      if (sql === 'begin immediate') writer = connection;
    });
    await app.services.db.transaction((tx) => tx.selectFrom('users').select('id').execute());
    stop();
    const connection = writer as Sqlite.Database | null;
    if (!connection) throw new Error('no connection wrote');
    // Each table has its first page already; a row longer than a page needs more of them.
    const line = '🏠'.repeat(255);
    const permanentAddress = { addressLine1: line, city: line, state: line, country: line, postCode: line };
    const filled = { ...organization, permanentAddress };
    connection.pragma(`max_page_count = ${Number(connection.pragma('page_count', { simple: true }))}`);
    const refused = await app.anonymous.post('/org', filled);
    expect(refused).toMatchObject({ status: 503, body: { error: { code: 'UNAVAILABLE' } } });
    expect(refused.headers.get('retry-after')).toBe('5');
    for (const [table, rows] of Object.entries(tablesOf(app))) expect({ table, rows }).toEqual({ table, rows: [] });
    connection.pragma('max_page_count = 1000000');
    expect((await app.anonymous.post('/org', filled)).status).toBe(200);
  });
});
