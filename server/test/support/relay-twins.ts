import { sql } from 'kysely';
import type { Tx } from '../../src/db/database.ts';
import type { StreamedEvent } from '../../src/outbox/envelope.ts';
import { readEvents, readNewest } from '../../src/outbox/event-log.ts';
import type { Twin } from './relay-world.ts';

type Built = (...args: unknown[]) => unknown;

/** A builder of statements that hears nothing of one condition. */
function deafTo(column: string, builder: object): object {
  return new Proxy(builder, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      const call: Built = (...args) => {
        if (name === 'where' && args[0] === column) return deafTo(column, target);
        const made: unknown = Reflect.apply(value, target, args);
        return name === 'where' || name === 'set' ? deafTo(column, Object(made)) : made;
      };
      return call;
    },
  });
}

/** Transactions in which relays move whatever column says otherwise. */
function unguarded(column: string): (tx: Tx) => Tx {
  return (tx) =>
    new Proxy(tx, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        const call: Built = (...args) => {
          const made: unknown = Reflect.apply(value, target, args);
          return name === 'updateTable' && args[0] === 'relays' ? deafTo(column, Object(made)) : made;
        };
        return call;
      },
    });
}

interface Row {
  readonly sequence: number;
}

/** A transaction in which events are not written, but put down here. */
function withoutEvents(tx: Tx, events: Row[]): Tx {
  const instead = { values: (rows: readonly Row[]) => ({ execute: async () => void events.push(...rows) }) };
  return new Proxy(tx, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      const call: Built = (...args) =>
        name === 'insertInto' && args[0] === 'outbox' ? instead : Reflect.apply(value, target, args);
      return call;
    },
  });
}

/** Ways to relay wrongly. */
export const brokenTwins = {
  /** Says that events have arrived and sends them afterwards, with those that come next. */
  markedFirst: {
    sink: (sink) => {
      let waiting: readonly StreamedEvent[] = [];
      return {
        ...sink,
        deliver: async (events) => {
          if (waiting.length > 0) await sink.deliver(waiting);
          waiting = events;
          return { delivered: events.length, failure: null };
        },
      };
    },
  },
  byMoment: {
    source: {
      newest: readNewest,
      read: async (read, query) => {
        const last = sql<number>`coalesce((select occurred_at from outbox where sequence = ${query.after}), 0)`;
        const later = await read
          .selectFrom('outbox')
          .where('sequence', '>', query.after)
          .where('occurred_at', '>', last)
          .select('sequence')
          .execute();
        const isLater = new Set(later.map(({ sequence }) => sequence));
        const events = await readEvents(read, { ...query, limit: 1_000 });
        return events.filter(({ envelope }) => isLater.has(envelope.sequence)).slice(0, query.limit);
      },
    },
  },
  publishedFirst: {
    change: (transaction, receiver) => (work) =>
      transaction(async (tx) => {
        const before = await readNewest(tx);
        const value = await work(tx);
        receiver.arrivals.push(...(await readEvents(tx, { after: before, limit: 1_000 })));
        return value;
      }),
  },
  writtenLate: {
    change: (transaction) => async (work) => {
      const events: Row[] = [];
      const value = await transaction((tx) => work(withoutEvents(tx, events)));
      if (events.length > 0) {
        await transaction((tx) =>
          tx
            .insertInto('outbox')
            .values(events as never)
            .execute(),
        );
      }
      return value;
    },
  },
  careless: { tx: unguarded('position') },
} as const satisfies Readonly<Record<string, Twin>>;
