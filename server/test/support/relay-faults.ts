import type { StreamedEvent } from '../../src/outbox/envelope.ts';
import { isPoison, type Receiver } from './relay-world.ts';
import type { Json } from './test-app.ts';

/** An event that a consumer has to get. */
export interface Told {
  readonly eventType: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** Events that were asked for again. */
export interface Asked {
  readonly after: number;
  /** The last event that had arrived, or was set aside, by then. */
  readonly upTo: number;
  /** Start of the arrivals that count. */
  readonly since: number;
}

/** Faults of the log: it contains the expected events, and nothing else, in the order in which they happened. */
export function faultsOfLog(log: readonly Json[], told: readonly Told[], from: number): string[] {
  const held = log.map(({ eventType, payload }) => ({ eventType, payload }));
  const isRight = JSON.stringify(held) === JSON.stringify(told);
  const isCounted = log.every(({ sequence }, place) => sequence === from + 1 + place);
  return [
    ...(isRight ? [] : [`log: ${JSON.stringify(held)} in place of ${JSON.stringify(told)}`]),
    ...(isCounted ? [] : ['log: numbers are left out']),
  ];
}

/**
 * Faults of the arrivals: they are the events of the log, each with the same id and content every time, and in order
 * except for refused ones.
 */
export function faultsOfArrivals(log: readonly Json[], { arrivals, refused }: Receiver): string[] {
  const known = new Map(log.map((envelope) => [envelope.id, JSON.stringify(envelope)]));
  const first = new Map<string, StreamedEvent>();
  const faults: string[] = [];
  for (const event of arrivals) {
    const { envelope, key } = event;
    if (known.get(envelope.id) !== JSON.stringify(envelope)) faults.push(`invented: ${JSON.stringify(envelope)}`);
    if (key !== envelope.payload['orgId']) faults.push(`invented: ${envelope.sequence} with another key`);
    if (!first.has(envelope.id)) first.set(envelope.id, event);
  }
  const orderly = [...first.values()]
    .filter((event) => !isPoison(event) && (refused.get(event.envelope.sequence) ?? 0) < 5)
    .map(({ envelope }) => envelope.sequence);
  const isOrderly = orderly.every((sequence, place) => sequence > (orderly[place - 1] ?? 0));
  return isOrderly ? faults : [...faults, `order: ${orderly.join()}`];
}

function arrivedSince({ arrivals }: Receiver, since: number): ReadonlySet<number> {
  return new Set(arrivals.slice(since).map(({ envelope }) => envelope.sequence));
}

/**
 * Faults of dead letters: each event has arrived or is a dead letter, and only those are that were refused often
 * enough.
 */
export function faultsOfDead(log: readonly Json[], dead: ReadonlySet<number>, receiver: Receiver): string[] {
  const arrived = arrivedSince(receiver, 0);
  return log.flatMap(({ sequence }) => {
    const isRefused = (receiver.refused.get(sequence) ?? 0) >= 5;
    if (dead.has(sequence)) return isRefused ? [] : [`dead: ${sequence}`];
    return arrived.has(sequence) ? [] : [`lost: ${sequence}`];
  });
}

/** Faults of replays: requested events arrived again. */
export function faultsOfReplays(asked: readonly Asked[], receiver: Receiver): string[] {
  return asked.flatMap(({ after, upTo, since }) => {
    const arrived = arrivedSince(receiver, since);
    const wanted = Array.from({ length: Math.max(0, upTo - after) }, (_, place) => after + 1 + place);
    const missing = wanted.filter((sequence) => !arrived.has(sequence));
    return missing.length === 0 ? [] : [`replay: ${missing.join()} never came again`];
  });
}
