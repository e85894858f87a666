import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { watchStatements } from '../../test/support/statement-watch.ts';
import { TestApp } from '../../test/support/test-app.ts';
import { appendAudit } from './audit-log.ts';
import { selectAuditPage, streamAudit } from './audit-query.ts';

const actor = 'a'.repeat(24);
const many = 12_000;
/** One in this many records is a failure. */
const rareness = 1_700;

describe('a search for what an index does not find', () => {
  let app: TestApp;
  /** The sequences of what is looked for, the oldest first. */
  const wanted: number[] = [];
  const filter = { orgId: null, actor, outcome: 'failure' } as const;

  beforeAll(async () => {
    app = await TestApp.start();
    const { db } = app.services;
    const origin = { requestId: 'many', network: '127.0.0.1' };
    const record = { action: 'session.refreshed', orgId: null, actor: { userId: actor }, subjectId: null } as const;
    for (let written = 0; written < many; written += 500) {
      const outcomes = Array.from({ length: 500 }, (_, place) => (written + place + 1) % rareness === 0);
      const records = outcomes.map((isWanted) => ({
        ...record,
        origin,
        outcome: isWanted ? ('failure' as const) : ('success' as const),
      }));
      await db.transaction((tx) => appendAudit(tx, app.services, ...records));
      // Set back now and then: the order is that of time.
      app.clock.advance(written % 2_500 === 0 ? -700 : 300);
    }
    const rows = await db.read.selectFrom('audit_log').where('outcome', '=', 'failure').selectAll().execute();
    rows.sort((one, other) => one.occurred_at - other.occurred_at || one.sequence - other.sequence);
    wanted.push(...rows.map(({ sequence }) => sequence));
  });
  afterAll(() => app.close());

  it('finds all of them, the newest first, on one page or on several (AUDIT-12)', async () => {
    const { read } = app.services.db;
    expect(wanted.length).toBeGreaterThan(5);
    const newest = await selectAuditPage(read, filter, { before: null, limit: 100 });
    expect(newest.map(({ sequence }) => sequence)).toEqual(wanted.toReversed());
    const first = await selectAuditPage(read, filter, { before: null, limit: 4 });
    const { occurred_at: occurredAt = 0, sequence = 0 } = first.at(-1) ?? {};
    const rest = await selectAuditPage(read, filter, { before: { occurredAt, sequence }, limit: 100 });
    expect([...first, ...rest].map((row) => row.sequence)).toEqual(wanted.toReversed());
  });

  it('finds all of them, the oldest first (AUDIT-13)', async () => {
    const found: number[] = [];
    for await (const rows of streamAudit(app.services.db.read, filter)) {
      found.push(...rows.map(({ sequence }) => sequence));
    }
    expect(found).toEqual(wanted);
  });

  it('leaves nothing out where it pauses, and nothing twice', async () => {
    const all = { ...filter, outcome: 'success' } as const;
    const found = await selectAuditPage(app.services.db.read, all, { before: null, limit: 2 * many });
    expect([found.length, new Set(found.map(({ sequence }) => sequence)).size]).toEqual(
      Array(2).fill(many - wanted.length),
    );
    let count = 0;
    for await (const rows of streamAudit(app.services.db.read, all)) count += rows.length;
    expect(count).toBe(many - wanted.length);
  });

  it('keeps to a range of time, whichever way and wherever it goes on', async () => {
    const { read } = app.services.db;
    const all = await read.selectFrom('audit_log').where('actor_user_id', '=', actor).selectAll().execute();
    const times = all.map((row) => row.occurred_at).sort((one, other) => one - other);
    const [from = 0, to = 0] = [times[2_000], times[10_000]];
    const range = { ...filter, outcome: 'success', from, to } as const;
    const inRange = all.filter((row) => row.outcome === 'success' && row.occurred_at >= from && row.occurred_at < to);
    const sequences = inRange.map(({ sequence }) => sequence).sort((one, other) => one - other);
    const newest = await selectAuditPage(read, range, { before: { occurredAt: 1e14, sequence: 1 }, limit: many });
    expect(newest.map(({ sequence }) => sequence).sort((one, other) => one - other)).toEqual(sequences);
    const oldest: number[] = [];
    for await (const rows of streamAudit(read, range)) oldest.push(...rows.map(({ sequence }) => sequence));
    expect(oldest.toReversed()).toEqual(newest.map(({ sequence }) => sequence));
  });

  it('gives others their turn after some thousand records, and where an index finds it, takes one statement', async () => {
    const { read } = app.services.db;
    let statements = 0;
    const stop = watchStatements(() => {
      statements += 1;
    });
    let turns = 0;
    const turn = () => {
      turns += 1;
      next = setImmediate(turn);
    };
    let next = setImmediate(turn);
    await app.services.relays.close();
    await selectAuditPage(read, { orgId: null, outcome: 'failure' }, { before: null, limit: 100 });
    const single = statements;
    [statements, turns] = [0, 0];
    await selectAuditPage(read, filter, { before: null, limit: 100 });
    clearImmediate(next);
    stop();
    expect(single).toBe(1);
    expect(statements).toBe(6);
    expect(turns).toBeGreaterThanOrEqual(2);
  });
});
