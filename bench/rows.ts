import type { Tell } from '../harness/command-line.ts';

/** What every measurement is given. */
export interface Measuring {
  readonly tell: Tell;
}

/** How long and how often is measured. */
export interface Rounds extends Measuring {
  /** Of one run of load. */
  readonly seconds: number;
  readonly rounds: number;
}

/** What the command line says. */
export interface Options extends Rounds {
  /** For how long P13 puts load on the server. */
  readonly minutes: number;
}

/** A row of the table. */
export interface Row {
  readonly id: string;
  readonly kind: string;
  readonly what: string;
  /** Where a row has several. */
  readonly part?: string;
  readonly subject?: string;
  readonly peer?: string;
  /** How often something is tried. */
  readonly tries?: number;
  readonly unit?: string;
  /** Null for a row that is there for orientation. */
  readonly budget: number | null;
}

/** Where a server is that is put under load, and what it is sent. */
export interface Target {
  readonly name: string;
  readonly pid: number;
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The body of a POST; without it, a GET is sent. */
  readonly payload?: string;
}

/** The same, with the body that it is known to answer. */
export interface Measured extends Target {
  readonly body: Buffer;
}

/** What the load generator saw in one run; null where the system does not say. */
export interface LoadResult {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of a core. */
  readonly serverCpuShare: number | null;
  /** Of the time, for which the event loop of the server was ready and waited for a core. */
  readonly serverWaitShare: number | null;
  /** For one request. */
  readonly serverCpuMicroseconds: number | null;
  readonly generatorCpuShare: number;
  /** How late one request of a hundred was sent, where they were sent at a rate. */
  readonly lateP99Ms?: number;
}

/** The two sides of one round. */
export interface Sides {
  readonly subject: LoadResult;
  readonly peer: LoadResult;
}

/** What was done of the work at a rate: how often each answer came, and the median time of the good ones. */
export interface WorkDone {
  readonly perSecond: number;
  readonly answers: Readonly<Record<string, number>>;
  readonly medianMs: number | null;
}

/** Token checks without and with work at the same time. */
export interface Turn {
  readonly idle: LoadResult;
  readonly loaded: LoadResult & { readonly work: WorkDone };
}

/** What was measured for a row, as the table and the lines below it say it. */
export interface Seen {
  /** What the budget is about. */
  readonly value: number;
  readonly ours: string;
  readonly peerDoes?: string;
  readonly ratio?: string;
  /** The same ratio by processor time of a request: it hardly changes when other programs take time from the servers. */
  readonly byCpu?: string;
  readonly latencies?: string;
  readonly peerLatencies?: string;
  /** Whether other programs took time from the servers. */
  readonly isDisturbed?: boolean;
  readonly lines?: readonly string[];
  /** The numbers in full, for results.json. */
  readonly measured: unknown;
}

/** A row that was measured, or why it could not be. */
export interface Outcome {
  readonly row: Row;
  /** Null where there is no budget, or nothing was measured. */
  readonly consume: boolean | null;
  readonly seen: Seen | null;
  readonly unmeasured?: string;
}
