import { isDeepStrictEqual } from 'node:util';

/** Milliseconds since 1970, on a clock that only goes forward within this process. */
export const nowMs = () => performance.timeOrigin + performance.now();

/**
 * What clients asked for and what they were told. An entry is a change that has to be told of by one event: `key` is whose
 * events it stands among, in order, `event` is `{ eventType, payload }`, known once the answer is there or the store was
 * looked at. `answeredMs` is Infinity for what was done and never answered.
 */
export class History {
  entries = [];
  /** Answers that nobody should have got. */
  complaints = [];
  /** Personal access tokens and groups that were answered, which are never told of. */
  tokens = [];
  groups = [];

  add(entry) {
    this.entries.push(entry);
  }

  complain(text) {
    this.complaints.push(text);
  }
}

/**
 * Compares events with what was done: every change its one event with its content, no event without a change, in the order of
 * each user's changes, and none ahead of one whose answer was there before it was asked for. Notes in each entry the
 * `sequence` of its event. Answers `{ lost, invented, disordered }`, sentences all of them.
 */
export function compareEvents(entries, events) {
  const [lost, invented, disordered] = [[], [], []];
  const expected = Map.groupBy ? Map.groupBy(entries, ({ key }) => key) : groupBy(entries);
  const waiting = new Map([...expected].map(([key, list]) => [key, [...list]]));
  const ids = new Set();
  let sentMostMs = 0;
  for (const [place, { id, sequence, eventType, payload }] of events.entries()) {
    const what = `${eventType} ${sequence}`;
    if (sequence !== events[0].sequence + place) disordered.push(`${what}: numbers are left out or swapped`);
    if (ids.has(id)) invented.push(`${what}: the same id twice`);
    ids.add(id);
    const list = waiting.get(keyOf({ eventType, payload })) ?? [];
    const at = list.findIndex(({ event }) => isDeepStrictEqual(event, { eventType, payload }));
    if (at < 0) {
      invented.push(`${what}: ${JSON.stringify(payload)}`);
      continue;
    }
    if (at > 0) disordered.push(`${what}: ${at} changes of the same come before it`);
    const [entry] = list.splice(at, 1);
    // The same may happen twice: which event tells of which change, nobody else knows.
    entry.sequence = sequence;
    if (entry.answeredMs < sentMostMs) disordered.push(`${what}: was answered before one ahead of it was asked for`);
    sentMostMs = Math.max(sentMostMs, entry.sentMs);
  }
  for (const list of waiting.values()) {
    for (const { event, answeredMs } of list) {
      const how = answeredMs === Infinity ? 'was done' : 'was acknowledged';
      lost.push(`${event.eventType} ${JSON.stringify(event.payload)} ${how} and has no event`);
    }
  }
  return { lost, invented, disordered };
}

function groupBy(entries) {
  const groups = new Map();
  for (const entry of entries) groups.set(entry.key, [...(groups.get(entry.key) ?? []), entry]);
  return groups;
}

/** Whose events an event stands among. */
export function keyOf({ eventType, payload }) {
  return eventType.startsWith('org') ? 'organization' : payload.userId;
}

/**
 * Compares what a broker holds with the log: without repetitions it is the same, in the same order, and a repetition has the
 * same content. Answers `{ lost, invented, disordered, repeated }`.
 */
export function compareMessages(messages, events) {
  const [lost, invented, disordered] = [[], [], []];
  const known = new Map(events.map((event) => [event.id, event]));
  const first = new Map();
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

/** The people who are there by what the events say: `[{ userId, email, fullName? }]`, by their ids. */
export function peopleBy(events) {
  const people = new Map();
  for (const { eventType, payload } of events) {
    if (eventType === 'userDeleted') people.delete(payload.userId);
    else if (eventType.startsWith('user')) people.set(payload.userId, payload);
  }
  return people;
}

/** Compares who is there with what the events say. */
export function comparePeople(users, events) {
  const told = peopleBy(events);
  const faults = [];
  for (const { _id, email, fullName, designation } of users) {
    const person = told.get(_id);
    told.delete(_id);
    if (!person) faults.push(`${email} is there and no event says so`);
    else if (person.email !== email || person.fullName !== fullName)
      faults.push(`${email} is not as the last event says`);
    else if (person.designation !== designation && 'firstName' in person) faults.push(`${email} has another job`);
  }
  for (const { email } of told.values()) faults.push(`${email} is not there, and no event says so`);
  return faults;
}
