import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { hasWaiters } from '../../test/support/second-connection.ts';
import { TestApp } from '../../test/support/test-app.ts';
import { hour } from '../base/clock.ts';
import { takeNumbers } from '../db/counters.ts';
import type { Reader, Tx } from '../db/database.ts';
import { readEvents, readSpan } from './event-log.ts';
import { appendEvents, type DomainEvent } from './outbox.ts';

let app: TestApp;

beforeEach(async () => {
  app = await TestApp.start();
  await app.setUp();
});
afterEach(() => app.close());

const event = (name: string): DomainEvent => ({
  eventType: 'userDeleted',
  payload: { orgId: 'a'.repeat(24), userId: 'b'.repeat(24), email: `${name}@example.com` },
});

const openDoor = async () => {};

function gate() {
  let [open, arrive] = [() => {}, () => {}];
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  const pass = () => {
    arrive();
    return opened;
  };
  return { open, arrived, pass };
}

/** Writes an event; between its number and its commit it passes a door. */
type Write = (name: string, pass: () => Promise<void>) => Promise<void>;
/** Follows the log: answers the names of what is new since the last time. */
type Follow = () => Promise<string[]>;

/** As the service does: the number is taken where the event is written. */
const write: Write = (name, pass) =>
  app.services.db.transaction(async (tx) => {
    await appendEvents(tx, app.services, [event(name)]);
    await pass();
  });

/** A broken twin: the number is taken ahead of the transaction in which the event is written. */
const writeNumberedBefore: Write = async (name, pass) => {
  const { db, clock, newId } = app.services;
  const sequence = await db.transaction((tx) => takeNumbers(tx, 'event', 1));
  await pass();
  const { eventType, payload } = event(name);
  const row = { sequence, id: newId(), org_id: payload.orgId, event_type: eventType, occurred_at: clock.now() };
  const insert = (tx: Tx) =>
    tx
      .insertInto('outbox')
      .values({ ...row, payload: JSON.stringify(payload) })
      .execute();
  await db.transaction(insert);
};

const nameOf = (payload: unknown) => String((payload as { email?: unknown }).email).split('@')[0] ?? '';

async function follower(): Promise<Follow> {
  const { read } = app.services.db;
  let { newest: after } = await readSpan(read);
  return async () => {
    const events = await readEvents(read, { after, limit: 1_000 });
    after = events.at(-1)?.envelope.sequence ?? after;
    return events.map(({ envelope }) => nameOf(envelope.payload));
  };
}

/** A mutant: it continues after the latest time that it has seen. */
async function followerByTime(): Promise<Follow> {
  const read: Reader = app.services.db.read;
  let last = app.services.clock.now();
  return async () => {
    const rows = await read
      .selectFrom('outbox')
      .where('occurred_at', '>', last)
      .orderBy('occurred_at')
      .selectAll()
      .execute();
    last = Math.max(last, ...rows.map(({ occurred_at }) => occurred_at));
    return rows.map(({ payload }) => nameOf(JSON.parse(payload)));
  };
}

/** Two who write at once, the first of whom commits late, and one who follows meanwhile: what is seen. */
async function lateCommit(writing: Write, follow: Follow): Promise<string[]> {
  const slow = gate();
  app.clock.advance(1);
  const first = writing('first', slow.pass);
  await slow.arrived;
  app.clock.advance(1);
  let isThrough = false;
  const second = writing('second', openDoor).then(() => {
    isThrough = true;
  });
  // The second one either comes through at once or has to wait for the first.
  await vi.waitUntil(async () => isThrough || (await hasWaiters(app)));
  const seen = await follow();
  slow.open();
  await Promise.all([first, second]);
  return [...seen, ...(await follow())];
}

/** The clock is set back between two events: what is seen. */
async function clockSetBack(follow: Follow): Promise<string[]> {
  app.clock.advance(1);
  await write('first', openDoor);
  const seen = await follow();
  app.clock.advance(-hour);
  await write('second', openDoor);
  return [...seen, ...(await follow())];
}

describe('anyone who follows the log by its sequence', () => {
  it('misses no one who commits late (EVENT-9)', async () => {
    expect(await lateCommit(write, await follower())).toEqual(['first', 'second']);
  });

  it('misses nothing when the clock is set back (EVENT-9, D7)', async () => {
    expect(await clockSetBack(await follower())).toEqual(['first', 'second']);
  });

  it('would miss it if numbers were taken outside the transaction: the broken twin is caught', async () => {
    expect(await lateCommit(writeNumberedBefore, await follower())).toEqual(['second']);
  });

  it('would miss it by the time of events: that broken twin is caught, too', async () => {
    expect(await clockSetBack(await followerByTime())).toEqual(['first']);
  });

  it('finds no gap after a change that was taken back (EVENT-8)', async () => {
    const follow = await follower();
    const failing = app.services.db.transaction(async (tx) => {
      await appendEvents(tx, app.services, [event('never')]);
      throw new Error('taken back');
    });
    await expect(failing).rejects.toThrow('taken back');
    await write('next', openDoor);
    expect(await follow()).toEqual(['next']);
    const sequences = (await app.events()).map(({ sequence }) => sequence);
    expect(sequences).toEqual([1, 2, 3]);
  });
});

describe('what is read of the log', () => {
  it('is of one organization, or of some types, where that is asked for (EVENT-2)', async () => {
    const { read } = app.services.db;
    await write('elsewhere', openDoor);
    const [{ org_id: own }] = await app.events();
    const sequencesOf = async (query: Partial<Parameters<typeof readEvents>[1]>) =>
      (await readEvents(read, { after: 0, limit: 100, ...query })).map(({ envelope }) => envelope.sequence);
    expect(await sequencesOf({ orgId: own })).toEqual([1, 2]);
    expect(await sequencesOf({ orgId: 'a'.repeat(24) })).toEqual([3]);
    expect(await sequencesOf({ types: new Set(['userAdded', 'userDeleted']) })).toEqual([2, 3]);
    expect(await sequencesOf({ types: new Set(['orgCreated']), orgId: 'a'.repeat(24) })).toEqual([]);
    expect(await sequencesOf({})).toEqual([1, 2, 3]);
  });
});
