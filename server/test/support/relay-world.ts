import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { Kysely, type KyselyPlugin, type RootOperationNode, SqliteDialect } from 'kysely';
import type { Database, Tx } from '../../src/db/database.ts';
import type { Tables } from '../../src/db/schema/tables.ts';
import type { StreamedEvent } from '../../src/outbox/envelope.ts';
import { readEvents, readNewest } from '../../src/outbox/event-log.ts';
import { Relay, type RelayParts } from '../../src/outbox/relay/relay.ts';
import type { Delivery, Sink } from '../../src/outbox/relay/sink.ts';
import type { EventSource } from '../../src/outbox/relay/subscription.ts';
import type { TestApp } from './test-app.ts';
import { isOnPostgres } from './test-store.ts';

/** Thrown in place of everything that a process would have done after its end. */
export class Crash extends Error {}

/** One life of a process that relays: it may end at any point, and then nothing of it happens any more. */
export class Life {
  /** Points that it has passed. */
  points = 0;
  #hasEnded = false;
  readonly #crashAt: number;
  readonly #turn: () => Promise<void>;

  /**
   * @param crashAt the number of the point at which it ends, 1 for the first
   * @param turn waited for at every point where others may have their turn
   */
  constructor(crashAt = Number.POSITIVE_INFINITY, turn = async () => {}) {
    this.#crashAt = crashAt;
    this.#turn = turn;
  }

  /** Passes a point. Inside a transaction no other lane can move: the store has one writer. */
  async pass({ isAlone = false } = {}): Promise<void> {
    this.points += 1;
    if (this.points >= this.#crashAt) this.#hasEnded = true;
    if (this.#hasEnded) throw new Crash();
    if (!isAlone) await this.#turn();
  }
}

function pointsAfterStatements(life: Life, isAlone: boolean): KyselyPlugin {
  return {
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      await life.pass({ isAlone });
      return result;
    },
  };
}

/**
 * A lane that waits after a statement holds the connection that it ran on: for the embedded store, which has one for
 * all, another one is used.
 */
function readerOf({ dataDir, services }: TestApp): {
  readonly read: Kysely<Tables>;
  readonly end: () => Promise<void>;
} {
  if (isOnPostgres) return { read: services.db.read, end: async () => {} };
  const database = new Sqlite(join(dataDir, 'latchkey.db'), { readonly: true });
  const read = new Kysely<Tables>({ dialect: new SqliteDialect({ database }) });
  return { read, end: () => read.destroy() };
}

/** The store as a life has it: a point ahead of each transaction, after each statement, and after each commit. */
function storeOf(db: Database, read: Kysely<Tables>, { life, twin = {} }: Beginning): Database {
  const inside = pointsAfterStatements(life, true);
  const pointed = (run: Database['transaction']): Database['transaction'] => {
    return async (work) => {
      await life.pass();
      const value = await run((given) => {
        const tx = given.withPlugin(inside);
        return work(twin.tx?.(tx) ?? tx);
      });
      await life.pass();
      return value;
    };
  };
  return { ...db, read, transaction: pointed(db.transaction), sideTransaction: pointed(db.sideTransaction) };
}

/** Behaviour of the sink for a delivery. */
export interface Outcome {
  readonly kind: 'fine' | 'unavailable' | 'refused';
  /** Maximum number of arriving events. */
  readonly arrive: number;
  /** Number of events reported as delivered, where it is unavailable. */
  readonly told: number;
}

const fine: Outcome = { kind: 'fine', arrive: Number.POSITIVE_INFINITY, told: 0 };

/** Something that is done wrongly, so that it can be seen that it is found out. */
export interface Twin {
  readonly sink?: (sink: Sink) => Sink;
  readonly source?: EventSource;
  /** Of the relay. */
  readonly tx?: (tx: Tx) => Tx;
  /** The transactions of changes. */
  readonly change?: (transaction: Database['transaction'], receiver: Receiver) => Database['transaction'];
}

/** Returns whether the sink refuses an event until it is repaired. */
export function isPoison({ envelope }: Pick<StreamedEvent, 'envelope'>): boolean {
  return envelope.payload['designation'] === 'poison';
}

/** Destination of events: it records the arrivals, and misbehaves as a test wants. */
export class Receiver {
  /** In the order in which they came, however often. */
  readonly arrivals: StreamedEvent[] = [];
  /** Number of refusals, by sequence. */
  readonly refused = new Map<number, number>();
  /** Number of arrivals at the beginning of each running delivery. */
  readonly #begun = new Set<number>();
  /** Its next outcomes; after those it behaves correctly. */
  outcomes: Outcome[] = [];
  /** It accepts what it refused before. */
  isMended = false;

  /** From where on arrivals come of what is asked for now: deliveries under way may have begun before. */
  get now(): number {
    return Math.min(this.arrivals.length, ...this.#begun);
  }

  #refuse({ envelope: { sequence } }: StreamedEvent): void {
    this.refused.set(sequence, (this.refused.get(sequence) ?? 0) + 1);
  }

  /** The way there, as one life has it: a point before and after each event. */
  sink(life: Life, batchMax: number): Sink {
    return {
      batchMax,
      deliver: async (events) => {
        const begun = this.arrivals.length;
        this.#begun.add(begun);
        try {
          return await this.#deliver(events, life);
        } finally {
          this.#begun.delete(begun);
        }
      },
      close: async () => {},
    };
  }

  async #deliver(events: readonly StreamedEvent[], life: Life): Promise<Delivery> {
    await life.pass();
    const outcome = this.outcomes.shift() ?? fine;
    const poison = this.isMended ? -1 : events.findIndex(isPoison);
    const arriving = events.slice(0, Math.min(poison < 0 ? events.length : poison, outcome.arrive));
    for (const event of arriving) {
      this.arrivals.push(event);
      await life.pass();
    }
    const delivered = arriving.length;
    const refused = events[delivered];
    if (outcome.kind === 'unavailable') {
      return { delivered: Math.min(delivered, outcome.told), failure: { kind: 'unavailable', reason: 'unavailable' } };
    }
    if (!refused) return { delivered, failure: null };
    this.#refuse(refused);
    return { delivered, failure: { kind: 'refused', reason: 'refused' } };
  }
}

const source: EventSource = { newest: readNewest, read: readEvents };
/** Pauses that move the clock as little as can be. */
const retry = { pauseMs: () => 10, pauseMsMax: 20, disableAfterMs: Number.POSITIVE_INFINITY };

/** Beginning of a relay. */
interface Beginning {
  readonly name: string;
  readonly owner: string;
  readonly life: Life;
  readonly receiver: Receiver;
  readonly twin?: Twin;
}

/** Has a relay of the product carry events from the store of a service to a receiver. */
export async function withRelay(
  app: TestApp,
  beginning: Beginning,
  use: (relay: Relay) => Promise<void>,
): Promise<void> {
  const { name, owner, life, receiver, twin = {} } = beginning;
  const { clock, newId, log, db } = app.services;
  const { read, end } = readerOf(app);
  const parts: RelayParts = {
    db: storeOf(db, read.withPlugin(pointsAfterStatements(life, false)), beginning),
    clock,
    newId,
    log: log.child({}, { level: 'silent' }),
    metrics: { noteRelay: () => {}, countRelayed: () => {} },
    owner,
  };
  const sink = receiver.sink(life, 3);
  const subscription = { name, source: twin.source ?? source, types: null, sink: twin.sink?.(sink) ?? sink, retry };
  try {
    await use(new Relay(subscription, parts));
  } finally {
    await end();
  }
}

const isOutboxInsert = (node: RootOperationNode) =>
  node.kind === 'InsertQueryNode' && node.into?.table.identifier.name === 'outbox';

/**
 * Place where a change breaks off: ahead of its event, with its event and before the commit, or once it is committed.
 */
export type Break = 'before the event' | 'before the commit' | 'after the commit';

/** Transactions that break off, if they write events; all others are as ever. */
export function breakingOff(transaction: Database['transaction'], where: Break): Database['transaction'] {
  return async (work) => {
    let hasEvent = false;
    const plugin: KyselyPlugin = {
      transformQuery: ({ node }) => {
        hasEvent ||= isOutboxInsert(node);
        if (hasEvent && where === 'before the event') throw new Error('broken off');
        return node;
      },
      transformResult: async ({ result }) => result,
    };
    const value = await transaction(async (tx) => {
      const value = await work(tx.withPlugin(plugin));
      if (hasEvent && where === 'before the commit') throw new Error('broken off');
      return value;
    });
    if (hasEvent) throw new Error('broken off');
    return value;
  };
}
