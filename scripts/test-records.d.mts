import type { Reporter } from 'vitest/node';

/** A reporter that writes the records of a run where LATCHKEY_TEST_RECORDS says, if it says so. */
export const recordWriter: Reporter;

interface FileRecord {
  readonly project: string;
  readonly file: string;
  readonly state: string;
  readonly tests: readonly { readonly name: string; readonly state: string; readonly errors: readonly string[] }[];
  readonly errors: readonly string[];
}

/** Counts, names of skipped tests, and one text for each failure. */
export function countOf(records: { readonly files: readonly FileRecord[]; readonly errors: readonly string[] }): {
  readonly passed: number;
  readonly skipped: readonly string[];
  readonly failures: readonly string[];
};
