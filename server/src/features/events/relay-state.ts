import { z } from 'zod';
import { toTimestamp } from '../../base/clock.ts';
import { components, idResponse, timestamp } from '../../http/schemas.ts';
import { envelopeResponse } from './event.ts';

/** State of a subscription. Rule: EVENT-28. */
export const relayState = z.object({
  name: z.string().describe('The stream and the destination, such as entity-events/broker'),
  state: z
    .enum(['delivering', 'failing', 'off'])
    .describe('off: nothing is sent, for it is switched off or not configured any more'),
  position: z.int().describe('The sequence of the last event that has arrived or was set aside'),
  behind: z.int().describe('How many events of the stream come after it'),
  deadLetters: z.int(),
  deliveredAt: timestamp.nullable().describe('When something last arrived'),
  failingSince: timestamp.nullable(),
  attempts: z.int().describe('How often the next event was tried'),
  nextTryAt: timestamp.nullable(),
  lastError: z.string().nullable(),
});
components.add(relayState, { id: 'EventRelay' });

/** A subscription as stored. */
interface StoredState {
  readonly name: string;
  readonly position: number;
  readonly attempts: number;
  readonly next_try_at: number | null;
  readonly failing_since: number | null;
  readonly last_error: string | null;
  readonly delivered_at: number | null;
}

const toTime = (ms: number | null) => (ms === null ? null : toTimestamp(ms));

/** Converts a subscription to the form that administrators see. Rule: EVENT-28. */
export function toRelayState(
  stored: StoredState,
  {
    isServed,
    newest,
    deadLetters,
  }: { readonly isServed: boolean; readonly newest: number; readonly deadLetters: number },
): z.output<typeof relayState> {
  const served = stored.failing_since === null ? ('delivering' as const) : ('failing' as const);
  return {
    name: stored.name,
    state: isServed ? served : 'off',
    position: stored.position,
    behind: Math.max(0, newest - stored.position),
    deadLetters,
    deliveredAt: toTime(stored.delivered_at),
    failingSince: toTime(stored.failing_since),
    attempts: stored.attempts,
    nextTryAt: toTime(stored.next_try_at),
    lastError: stored.last_error,
  };
}

/** An event that was set aside. Rule: EVENT-23. */
export const deadLetter = z.object({
  id: idResponse,
  relay: z.string(),
  sequence: z.int(),
  attempts: z.int(),
  lastError: z.string().nullable(),
  setAsideAt: timestamp,
  requeuedAt: timestamp.nullable().describe('When it was asked for again; null: it is dead'),
  event: envelopeResponse.nullable().describe('null: no longer kept'),
});
components.add(deadLetter, { id: 'DeadLetter' });

/** An event that was set aside, as the store has it. */
interface StoredDeadLetter {
  readonly id: string;
  readonly relay: string;
  readonly sequence: number;
  readonly attempts: number;
  readonly last_error: string | null;
  readonly created_at: number;
  readonly requeued_at: number | null;
}

/** An event that was set aside, as administrators see it. */
export function toDeadLetter(
  { id, relay, sequence, attempts, ...stored }: StoredDeadLetter,
  event: z.output<typeof envelopeResponse> | null,
): z.output<typeof deadLetter> {
  return {
    id,
    relay,
    sequence,
    attempts,
    lastError: stored.last_error,
    setAsideAt: toTimestamp(stored.created_at),
    requeuedAt: toTime(stored.requeued_at),
    event,
  };
}
