import type { Logger } from 'pino';
import { type Clock, minute } from '../../base/clock.ts';
import type { NewId } from '../../base/ids.ts';
import type { Database } from '../../db/database.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { StreamedEvent } from '../envelope.ts';
import type { RelayView } from './relay-state-cache.ts';
import {
  deleteDeadLetterRow,
  deleteLease,
  type StoredDeadLetter,
  type StoredRelay,
  selectRelay,
  selectRequeued,
  updateDeadLetterFailed,
  updateFailure,
  updateLease,
  updatePosition,
  updateRetryNow,
  upsertDeadLetter,
} from './relay-store.ts';
import { isToBeDisabled } from './retry.ts';
import type { SinkFailure } from './sink.ts';
import type { Subscription } from './subscription.ts';

/** Duration of a lease, longer than a delivery takes; no other node relays meanwhile. Rule: EVENT-22. */
const leaseMs = minute;
const renewBeforeMs = leaseMs / 2;
/** Attempts in which an event itself is refused before it is set aside. Rule: EVENT-23. */
const refusedTriesMax = 5;
/** A position moves past unwanted events once there are so many: each move is a commit. */
const passedOverMin = 500;

/** Dependencies of a relay. */
export interface RelayParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, 'noteRelay' | 'countRelayed'>;
  /** The owner of leases: another name on each node. */
  readonly owner: string;
}

/** The next action after a step; `seen` is the state that it found, `null` where the step itself changed it. */
export type Next =
  | { readonly kind: 'again' }
  /** Waits for work: until the state differs from `seen`, or until this time. */
  | { readonly kind: 'wait'; readonly untilMs: number; readonly seen: RelayView | null }
  | { readonly kind: 'ended' };

const again: Next = { kind: 'again' };

/**
 * Sends events from a log to a sink: at least once, in order, from where it ended. A step may be interrupted at any
 * point: the position moves only after a delivery, and only while this relay owns the lease. Rules: EVENT-9, EVENT-22,
 * EVENT-23.
 */
export class Relay {
  readonly #subscription: Subscription;
  readonly #parts: RelayParts;
  #leasedUntilMs = 0;

  constructor(subscription: Subscription, parts: RelayParts) {
    this.#subscription = subscription;
    this.#parts = parts;
  }

  /** Delivers the next events, if there are any. Throws what the store throws; then the step may be repeated. */
  async step(): Promise<Next> {
    const { db, metrics } = this.#parts;
    const relay = await selectRelay(db.read, this.#subscription.name);
    if (!relay) return { kind: 'ended' };
    const [deadLetter] = await selectRequeued(db.read, relay.name, 1);
    const untilMs = this.#pauseUntil(relay);
    // Queried first: all wanted events up to it are among those that are read next.
    const newest = await this.#subscription.source.newest(db.read);
    const events = await this.#readNext(relay);
    const behind = events.length === 0 ? 0 : newest - relay.position;
    metrics.noteRelay(relay.name, { behind, delayMs: this.#delayOf(events) });
    const seen = { relay, requeued: deadLetter?.sequence ?? null, newest };
    if (untilMs !== null) return { kind: 'wait', untilMs, seen };
    const passedOver = events.length === 0 && newest - relay.position >= passedOverMin;
    if (!(deadLetter || passedOver || events.length > 0))
      return { kind: 'wait', untilMs: Number.POSITIVE_INFINITY, seen };
    if (!(await this.#renewLease(relay.name))) return { kind: 'wait', untilMs: relay.held_until, seen };
    if (deadLetter) return this.#deliverDeadLetter(relay, deadLetter);
    if (events.length > 0) return this.#deliverNext(relay, events);
    await this.#advance(relay, newest, 0);
    return again;
  }

  /** Until when nothing is to be tried; `null`: it may be tried now. A pause that is longer than any was never meant. */
  #pauseUntil({ next_try_at: untilMs }: StoredRelay): number | null {
    const leftMs = (untilMs ?? 0) - this.#parts.clock.now();
    return leftMs > 0 && leftMs <= this.#subscription.retry.pauseMsMax ? untilMs : null;
  }

  #delayOf([first]: readonly StreamedEvent[]): number {
    return first ? Math.max(0, this.#parts.clock.now() - first.envelope.timestamp) : 0;
  }

  #readNext({ position }: StoredRelay): Promise<readonly StreamedEvent[]> {
    const { source, sink, types } = this.#subscription;
    return source.read(this.#parts.db.read, { after: position, limit: sink.batchMax, types });
  }

  async #renewLease(name: string): Promise<boolean> {
    const { db, clock, owner } = this.#parts;
    const nowMs = clock.now();
    if (this.#leasedUntilMs - nowMs > renewBeforeMs) return true;
    const untilMs = nowMs + leaseMs;
    const isLeased = await db.sideTransaction((tx) => updateLease(tx, { name, owner, nowMs, untilMs }));
    this.#leasedUntilMs = isLeased ? untilMs : 0;
    return isLeased;
  }

  /**
   * Sends a requeued event. Refused again, it is a dead letter again; while the destination is unavailable, it waits.
   */
  async #deliverDeadLetter(relay: StoredRelay, deadLetter: StoredDeadLetter): Promise<Next> {
    const { db, metrics } = this.#parts;
    const query = { after: deadLetter.sequence - 1, limit: 1, types: null };
    const [event] = await this.#subscription.source.read(db.read, query);
    const isKept = event?.envelope.sequence === deadLetter.sequence;
    const lost: SinkFailure = { kind: 'refused', reason: 'the event is no longer kept' };
    const { failure } = isKept ? await this.#subscription.sink.deliver([event]) : { failure: lost };
    if (event && failure && failure.kind !== 'refused') {
      return this.#fail({ relay, position: relay.position, failed: event, failure });
    }
    await db.sideTransaction(async (tx) => {
      const attempts = deadLetter.attempts + 1;
      if (failure) return updateDeadLetterFailed(tx, deadLetter.id, { attempts, reason: failure.reason });
      await deleteDeadLetterRow(tx, deadLetter.id);
      if (relay.failing_since !== null) await updateRetryNow(tx, relay.name);
    });
    metrics.countRelayed(relay.name, failure ? 'refused' : 'delivered', 1);
    return again;
  }

  async #deliverNext(relay: StoredRelay, events: readonly StreamedEvent[]): Promise<Next> {
    const { delivered, failure } = await this.#subscription.sink.deliver(events);
    const arrived = events[delivered - 1]?.envelope.sequence ?? relay.position;
    await this.#advance(relay, arrived, delivered);
    const failed = events[delivered];
    if (!(failure && failed)) return again;
    return this.#fail({ relay, position: arrived, failed, failure });
  }

  async #advance({ name, position }: StoredRelay, to: number, delivered: number): Promise<void> {
    if (to <= position) return;
    const { db, owner, clock, metrics } = this.#parts;
    const deliveredAt = delivered > 0 ? clock.now() : null;
    const step = { name, owner, from: position };
    // If the position was moved meanwhile, that wins, and these events are sent again.
    const isOurs = await db.sideTransaction((tx) => updatePosition(tx, step, { to, deliveredAt }));
    if (!isOurs) this.#leasedUntilMs = 0;
    metrics.countRelayed(name, 'delivered', delivered);
  }

  /** Starts over: the state at the beginning of the step is outdated, perhaps even the owner of the lease. */
  #beginAnew(): Next {
    this.#leasedUntilMs = 0;
    return again;
  }

  /** Lets others relay from here on, and wakes them. */
  async release(): Promise<void> {
    if (this.#leasedUntilMs === 0) return;
    this.#leasedUntilMs = 0;
    await this.#parts.db.transaction((tx) => deleteLease(tx, this.#subscription.name, this.#parts.owner));
  }

  async #fail({
    relay,
    position,
    failed,
    failure,
  }: {
    readonly relay: StoredRelay;
    readonly position: number;
    readonly failed: StreamedEvent;
    readonly failure: SinkFailure;
  }): Promise<Next> {
    const { clock, log, metrics } = this.#parts;
    const { retry, disable } = this.#subscription;
    const nowMs = clock.now();
    // What came before it has arrived: then it has failed for the first time.
    const before = position === relay.position ? relay : { attempts: 0, refusals: 0, failing_since: null };
    const [attempts, since] = [before.attempts + 1, before.failing_since ?? nowMs];
    // Only these count towards setting it aside: an unavailable destination says nothing about the event.
    const refusals = before.refusals + (failure.kind === 'refused' ? 1 : 0);
    const step = { name: relay.name, owner: this.#parts.owner, from: position };
    metrics.countRelayed(relay.name, failure.kind === 'refused' ? 'refused' : 'unavailable', 1);
    if (attempts === 1) log.warn({ relay: relay.name, reason: failure.reason }, 'events could not be delivered');
    if (failure.kind === 'refused' && refusals >= refusedTriesMax) {
      return this.#setAside(step, { failed, attempts, reason: failure.reason });
    }
    const isOver = failure.kind === 'unavailable' && isToBeDisabled(retry, { failingMs: nowMs - since, attempts });
    const pauseMs = Math.max(retry.pauseMs(attempts), failure.retryAfterMs ?? 0);
    const isNoted = await this.#parts.db.sideTransaction((tx) =>
      updateFailure(tx, step, {
        attempts,
        refusals,
        next_try_at: nowMs + pauseMs,
        failing_since: since,
        last_error: failure.reason,
      }),
    );
    // If the subscription was moved meanwhile, or is to retry at once, this failure is outdated.
    if (!isNoted) return this.#beginAnew();
    if (disable && (failure.kind === 'gone' || isOver)) {
      await disable(failure.kind === 'gone' ? 'gone' : 'failing', failure.reason);
      return { kind: 'ended' };
    }
    return { kind: 'wait', untilMs: nowMs + pauseMs, seen: null };
  }

  /** Makes an event a dead letter and moves past it, both or neither. */
  async #setAside(
    step: { readonly name: string; readonly owner: string; readonly from: number },
    {
      failed,
      attempts,
      reason,
    }: { readonly failed: StreamedEvent; readonly attempts: number; readonly reason: string },
  ): Promise<Next> {
    const { db, clock, newId, metrics, log } = this.#parts;
    const { sequence } = failed.envelope;
    const isOurs = await db.sideTransaction(async (tx) => {
      if (!(await updatePosition(tx, step, { to: sequence, deliveredAt: null }))) return false;
      await upsertDeadLetter(tx, {
        id: newId(),
        relay: step.name,
        sequence,
        attempts,
        last_error: reason,
        created_at: clock.now(),
        requeued_at: null,
      });
      return true;
    });
    // If the position was moved meanwhile, that wins, as after a delivery.
    if (!isOurs) return this.#beginAnew();
    metrics.countRelayed(step.name, 'dead', 1);
    log.error(
      { relay: step.name, sequence, reason },
      'event set aside as a dead letter: an administrator may requeue it',
    );
    return again;
  }
}
