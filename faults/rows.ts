import type { Tell } from '../harness/command-line.ts';
import type { Store, StoreName } from './stores.ts';

/** What the command line says. */
export interface Options {
  /** The ids of rows. */
  readonly only: readonly string[];
  readonly kills: number;
  readonly outageSeconds: number;
  readonly changes: number;
  readonly cuts: number;
  readonly seconds: number;
  readonly short: boolean;
  readonly store: StoreName;
}

/** What every row of fault injection is given. */
export interface Given {
  /** The entry point of the build that is put to it. */
  readonly entry: string;
  readonly tell: Tell;
}

/** What the rows of most suites are given. */
export interface RowOptions extends Given {
  /** A little of everything. */
  readonly short: boolean;
  /** How long a load lasts. */
  readonly seconds: number;
  readonly store: Store;
}

/** What was seen in a row: sentences on what was wrong, and what is to be said of it. */
export interface Outcome {
  /** What was otherwise than expected. */
  readonly faults?: readonly string[];
  /** What was acknowledged and is not there; what is there without a change; what is in the wrong order. */
  readonly lost?: readonly string[];
  readonly invented?: readonly string[];
  readonly disordered?: readonly string[];
  /** Limits that did not hold. */
  readonly unmet?: readonly string[];
  /** How often messages were sent again. */
  readonly repeated?: number;
  readonly events?: number;
  /** What was done, for the table, and a line below it. */
  readonly done?: string;
  readonly note?: string;
}

/** A row that says itself what it expects. */
export interface SuiteRow {
  readonly id: string;
  readonly what: string;
  readonly expected: string;
  /** Left out of a short run. */
  readonly isLong?: boolean;
  run(options: RowOptions): Promise<Outcome>;
}

/** How a row appears in the table. */
export interface RowHead {
  readonly id: string;
  readonly what: string;
  readonly kind: 'proof' | 'mutant' | 'check';
  readonly broker?: string;
  readonly expected?: string;
}

/** A row that is to be run. */
export interface Planned {
  readonly row: RowHead;
  run(): Promise<Outcome>;
}
