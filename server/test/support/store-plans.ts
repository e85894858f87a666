import type { StoreConnection } from './store-connection.ts';
import type { Json } from './test-app.ts';
import { isOnPostgres } from './test-store.ts';

/** Plan of a statement. */
export interface Plan {
  /** All steps, one a line, with the names of the indexes. */
  readonly text: string;
  /** The steps that go through a whole table. */
  readonly scans: readonly string[];
}

/** Every step of a plan of PostgreSQL. */
function steps(node: Json): Json[] {
  return [node, ...(node.Plans ?? []).flatMap(steps)];
}

function ofPostgres(store: StoreConnection, sql: string, values: readonly unknown[]): Plan {
  // Of a few rows it would read all, and sort them, whatever indexes there are.
  for (const way of ['seqscan', 'bitmapscan', 'sort']) store.exec(`SET enable_${way} = off`);
  const [plan] = store
    .prepare(`EXPLAIN (FORMAT JSON) ${sql}`)
    .pluck()
    .get(...values);
  const all = steps(plan.Plan).filter((step) => step['Relation Name'] !== undefined);
  const name = (step: Json) =>
    [step['Node Type'], step['Relation Name'], step.Alias, step['Index Name'], step['Index Cond']].join(' ');
  const isWhole = (step: Json) => step['Node Type'] === 'Seq Scan';
  return { text: all.map(name).join('\n'), scans: all.filter(isWhole).map(name) };
}

/** Asks a store how it would answer a statement, with the same value in place of each parameter. */
export function planOf(store: StoreConnection, sql: string): Plan {
  const values = Array.from(sql.matchAll(/\?/g), () => '1');
  if (isOnPostgres) return ofPostgres(store, sql, values);
  const rows = store.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values) as { detail: string }[];
  const details = rows.map(({ detail }) => detail);
  return { text: details.join('\n'), scans: details.filter((detail) => /^SCAN (?!\(subquery|placed)/.test(detail)) };
}
