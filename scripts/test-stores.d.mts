import type { Reporter } from 'vitest/node';

/** Which test files there are, and on which store they run. */
export function testStores(): {
  readonly all: string[];
  readonly onPostgres: string[];
  readonly postgresOnly: string[];
  /** Why those that touch a store run on the embedded one only, by file. */
  readonly reasons: Readonly<Record<string, string>>;
};

/** Tells at the end of a run what ran on which store, and what did not run on PostgreSQL, and why. */
export const storeCounts: Reporter;
