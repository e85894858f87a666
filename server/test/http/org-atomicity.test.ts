import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  diskError,
  rollBackByItself,
  tablesOf,
  type WatchedConnection,
  watchStatements,
} from '../support/statement-watch.ts';
import { organization, TestApp } from '../support/test-app.ts';

/** The statements of the transaction of POST /org, its begin and commit included. */
async function statementsOfCreation(): Promise<string[]> {
  const app = await TestApp.start();
  const statements: string[] = [];
  let writer: WatchedConnection | null = null;
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
function failAt(place: number, failure: (writer: WatchedConnection) => Error): () => void {
  let writer: WatchedConnection | null = null;
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
  let before: ReturnType<typeof tablesOf>;
  beforeEach(async () => {
    app = await TestApp.start();
    before = tablesOf(app);
  });
  afterEach(() => app.close());

  async function createExpecting(status: number, code: string): Promise<void> {
    const response = await app.anonymous.post('/org', organization);
    expect(response).toMatchObject({ status, body: { error: { code } } });
    expect(response.text).not.toMatch(/sqlite|insert|begin|disk|injected|\.ts/i);
  }

  function expectNothingStored(): void {
    const stored = tablesOf(app);
    expect(stored).toEqual(before);
    for (const table of ['organizations', 'users', 'outbox', 'audit_log']) expect(stored[table]).toEqual([]);
  }

  const kinds = [
    ['500 INTERNAL (a fault)', () => new Error('injected')],
    ['503 UNAVAILABLE (the disk fails)', () => diskError('broken')],
    [
      '503 UNAVAILABLE (the disk is full)',
      (writer: WatchedConnection) => {
        rollBackByItself(writer);
        return diskError('full');
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
      const { status: created, body } = await app.anonymous.post('/org', organization);
      expect(created).toBe(200);
      // No number was used up by what failed.
      expect(body.slug).toBe('org-1001');
      expect((await app.events()).map(({ sequence }) => sequence)).toEqual([1, 2]);
      expect((await app.audit()).map(({ sequence }) => sequence)).toEqual([1]);
      expect((await app.anonymous.get('/org/exists')).body).toEqual({ exists: true });
    },
  );
});
