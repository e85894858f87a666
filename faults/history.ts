import { isDeepStrictEqual } from 'node:util';
import type { Json } from '../harness/api-client.ts';
import type { Message } from './brokers.ts';
import type { LoggedEvent } from './service.ts';

/** When something was asked for and when it was answered, by `nowMs`. */
export interface Times {
  readonly sentMs: number;
  /** Infinity for what was done and never answered. */
  readonly answeredMs: number;
}

/** A change that one event has to tell of. */
export interface Entry extends Times {
  /** The user or organization whose events it stands among, in order. */
  readonly key: string;
  readonly event: { readonly eventType: string; readonly payload: Json };
  /** Of its event, once that was found. */
  sequence?: number;
}

/** A user as it is answered. */
export interface UserRecord {
  readonly _id: string;
  readonly orgId: string;
  readonly email: string;
  readonly fullName: string;
  readonly firstName?: string;
  readonly middleName?: string;
  readonly lastName?: string;
  readonly designation?: string | undefined;
}

/** What a comparison found, in sentences. */
interface Comparison {
  readonly lost: readonly string[];
  readonly invented: readonly string[];
  readonly disordered: readonly string[];
}

/** Milliseconds since 1970, on a clock that only goes forward within this process. */
export const nowMs = () => performance.timeOrigin + performance.now();

/**
 * What clients asked for and how it was answered. An entry is known once the answer is there or the store was looked at.
 */
export class History {
  readonly entries: Entry[] = [];
  /** Answers that should not have been given. */
  readonly complaints: string[] = [];
  /** Personal access tokens and groups that were answered, which are never told of. */
  readonly tokens: ({ readonly token: string } & Times)[] = [];
  readonly groups: { readonly name: string }[] = [];

  add(entry: Entry): void {
    this.entries.push(entry);
  }

  complain(text: string): void {
    this.complaints.push(text);
  }
}

/**
 * Compares events with what was done: every change its one event with its content, no event without a change, in the order of
 * each user's changes, and none ahead of one whose answer was there before it was asked for. Notes in each entry the
 * `sequence` of its event. Answers `{ lost, invented, disordered }`, sentences all of them.
 */
export function compareEvents(entries: readonly Entry[], events: readonly LoggedEvent[]): Comparison {
  const [invented, disordered]: [string[], string[]] = [[], []];
  const waiting = byKey(entries);
  const ids = new Set<string>();
  let sentMostMs = 0;
  for (const [place, { id, sequence, eventType, payload }] of events.entries()) {
    const what = `${eventType} ${sequence}`;
    if (sequence !== (events[0]?.sequence ?? 0) + place) disordered.push(`${what}: numbers are left out or swapped`);
    if (ids.has(id)) invented.push(`${what}: the same id twice`);
    ids.add(id);
    const { entry, before } = takeEntry(waiting, { eventType, payload });
    if (entry === undefined) {
      invented.push(`${what}: ${JSON.stringify(payload)}`);
      continue;
    }
    if (before > 0) disordered.push(`${what}: ${before} changes of the same come before it`);
    // The same may happen twice: which event tells of which change is noted here alone.
    entry.sequence = sequence;
    if (entry.answeredMs < sentMostMs) disordered.push(`${what}: was answered before one ahead of it was asked for`);
    sentMostMs = Math.max(sentMostMs, entry.sentMs);
  }
  return { lost: [...waiting.values()].flat().map(lossOf), invented, disordered };
}

/** Takes a change with an event out of those that wait for one; `before` it, so many others of the same key wait. */
function takeEntry(waiting: ReadonlyMap<string, Entry[]>, event: Entry['event']) {
  const list = waiting.get(keyOf(event)) ?? [];
  const before = list.findIndex((one) => isDeepStrictEqual(one.event, event));
  return { entry: before < 0 ? undefined : list.splice(before, 1)[0], before };
}

function lossOf({ event, answeredMs }: Entry): string {
  const how = answeredMs === Number.POSITIVE_INFINITY ? 'was done' : 'was acknowledged';
  return `${event.eventType} ${JSON.stringify(event.payload)} ${how} and has no event`;
}

function byKey(entries: readonly Entry[]): Map<string, Entry[]> {
  const groups = new Map<string, Entry[]>();
  for (const entry of entries) groups.set(entry.key, [...(groups.get(entry.key) ?? []), entry]);
  return groups;
}

/** Whose events an event stands among. */
export function keyOf({ eventType, payload }: Entry['event']): string {
  return eventType.startsWith('org') ? 'organization' : payload.userId;
}

/**
 * Compares what a broker holds with the log: without repetitions it is the same, in the same order, and a repetition has the
 * same content. Answers `{ lost, invented, disordered, repeated }`.
 */
export function compareMessages(
  messages: readonly Message[],
  events: readonly LoggedEvent[],
): Comparison & { readonly repeated: number } {
  const [lost, invented, disordered]: [string[], string[], string[]] = [[], [], []];
  const known = new Map(events.map((event) => [event.id, event]));
  const first = new Map<string, LoggedEvent>();
  let repeated = 0;
  for (const { id, key, value } of messages) {
    const event = known.get(id);
    if (!event || !isDeepStrictEqual(JSON.parse(value), event) || key !== event.payload.orgId) {
      invented.push(`the broker holds ${value}`);
      continue;
    }
    if (first.has(id)) repeated += 1;
    else first.set(id, event);
  }
  for (const { id, sequence, eventType } of events) {
    if (!first.has(id)) lost.push(`${eventType} ${sequence} never came to the broker`);
  }
  let last = 0;
  for (const { sequence, eventType } of first.values()) {
    if (sequence < last) disordered.push(`${eventType} ${sequence} came to the broker after ${last}`);
    last = Math.max(last, sequence);
  }
  return { lost, invented, disordered, repeated };
}

/** The users that are there by what the events say, by their ids. */
function usersBy(events: readonly LoggedEvent[]): Map<string, Json> {
  const users = new Map<string, Json>();
  for (const { eventType, payload } of events) {
    if (eventType === 'userDeleted') users.delete(payload.userId);
    else if (eventType.startsWith('user')) users.set(payload.userId, payload);
  }
  return users;
}

/** Compares who is there with what the events say. */
export function compareUsers(users: readonly UserRecord[], events: readonly LoggedEvent[]): readonly string[] {
  const told = usersBy(events);
  const faults: string[] = [];
  for (const { _id, email, fullName, designation } of users) {
    const user = told.get(_id);
    told.delete(_id);
    if (!user) faults.push(`${email} is there and no event says so`);
    else if (user.email !== email || user.fullName !== fullName) faults.push(`${email} is not as the last event says`);
    else if (user.designation !== designation && 'firstName' in user) faults.push(`${email} has another job`);
  }
  for (const { email } of told.values()) faults.push(`${email} is not there, and no event says so`);
  return faults;
}
