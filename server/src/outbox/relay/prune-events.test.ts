import { afterEach, describe, expect, it, vi } from 'vitest';
import { NatsServer } from '../../../../harness/nats-server.ts';
import { addEvents } from '../../../test/support/event-reader.ts';
import { addRelay } from '../../../test/support/stored-relays.ts';
import { type Client, TestApp } from '../../../test/support/test-app.ts';
import { day, hour } from '../../base/clock.ts';
import { pruneEvents } from './prune-events.ts';
import { updateReplay } from './relay-store.ts';

let app: TestApp;
let admin: Client;

async function begin(environment: Readonly<Record<string, string>> = {}): Promise<void> {
  app = await TestApp.start(environment);
  admin = await app.setUp();
}

afterEach(() => app.close());

const kept = async () => (await app.events()).map(({ sequence }) => sequence);
const prune = () => pruneEvents(app.services);

describe('how long events are kept (EVENT-20)', () => {
  it('30 days where nothing is said, to the millisecond, and the log goes on with its numbers', async () => {
    await begin();
    app.clock.advance(day);
    await addEvents(await app.signIn('ada@example.com'), 2);
    app.clock.advance(29 * day);
    expect([await prune(), await kept()]).toEqual([0, [1, 2, 3, 4]]);
    app.clock.advance(1);
    expect([await prune(), await kept()]).toEqual([2, [3, 4]]);
    app.clock.advance(day);
    expect([await prune(), await prune(), await kept()]).toEqual([2, 0, []]);
    await addEvents(await app.signIn('ada@example.com'), 1, 'next');
    expect(await kept()).toEqual([5]);
  });

  it('for EVENT_RETENTION_DAYS, and at once for another number of them after a reload (CONFIG-25)', async () => {
    await begin({ EVENT_RETENTION_DAYS: '2' });
    app.clock.advance(day + hour);
    expect(await prune()).toBe(0);
    app.environment['EVENT_RETENTION_DAYS'] = '1';
    app.services.reloadConfig();
    expect([await prune(), await kept()]).toEqual([2, []]);
  });

  it('only from the old end, whatever the clock did meanwhile: what is kept has no gap', async () => {
    await begin();
    app.clock.advance(-10 * day);
    await addEvents(await app.signIn('ada@example.com'), 3);
    app.clock.advance(10 * day + 25 * day);
    // Those in the middle are old enough by now, and what comes before them is not.
    expect([await prune(), await kept()]).toEqual([0, [1, 2, 3, 4, 5]]);
    app.clock.advance(6 * day);
    expect([await prune(), await kept()]).toEqual([5, []]);
  });

  it('many of them go in batches, between which others write', async () => {
    await begin();
    const { db, newId, clock } = app.services;
    const [{ org_id }] = await app.events();
    await db.transaction(async (tx) => {
      for (let sequence = 3; sequence <= 1_700; sequence += 1) {
        const row = { id: newId(), org_id, event_type: 'userAdded', occurred_at: clock.now(), payload: '{}' };
        await tx
          .insertInto('outbox')
          .values({ ...row, sequence })
          .execute();
      }
      await tx.updateTable('counters').set({ value: 1_700 }).where('name', '=', 'event').execute();
    });
    app.clock.advance(31 * day);
    const transactions = vi.spyOn(db, 'transaction');
    expect(await prune()).toBe(1_700);
    expect(transactions.mock.calls.length).toBeGreaterThan(3);
    transactions.mockRestore();
    expect(await kept()).toEqual([]);
  });

  it('longer where they have not gone out yet on a way that is in use (EVENT-9, EVENT-17)', async () => {
    const broker = await NatsServer.begin();
    await begin({ EVENTS_URL: broker.url });
    const position = async () => {
      const row = app.services.db.read
        .selectFrom('relays')
        .where('name', '=', 'entity-events/broker')
        .select('position');
      return (await row.executeTakeFirst())?.position;
    };
    await vi.waitUntil(async () => (await position()) === 2, { timeout: 15_000 });
    await broker.stop();
    await addEvents(admin, 3);
    app.clock.advance(40 * day);
    expect([await prune(), await kept()]).toEqual([2, [3, 4, 5]]);
    await broker.start();
    app.clock.advance(hour);
    await vi.waitUntil(async () => (await position()) === 5, { timeout: 15_000 });
    expect([await prune(), await kept()]).toEqual([3, []]);
    await broker.close();
  });

  it('longer where a subscription is moved back meanwhile: it gets all that it was promised (EVENT-10)', async () => {
    await begin();
    await addEvents(admin, 1);
    await addRelay(app, 'entity-events/broker', 3);
    app.clock.advance(31 * day);
    const { services } = app;
    const { db } = services;
    const relays = { ...services.relays, names: () => ['entity-events/broker'] };
    const transaction: typeof db.transaction = async (work) => {
      // The replay is a little earlier.
      await db.transaction((tx) => updateReplay(tx, 'entity-events/broker', 1));
      return db.transaction(work);
    };
    const parts = { clock: services.clock, config: services.config, relays };
    expect(await pruneEvents({ ...parts, db: { ...db, transaction } })).toBe(1);
    expect(await kept()).toEqual([2, 3]);
  });

  it('not for a subscription that is not in use, nor for one of the audit log', async () => {
    await begin();
    await addRelay(app, 'entity-events/broker', 0);
    await addRelay(app, 'audit-events/broker', 0);
    app.clock.advance(31 * day);
    expect([await prune(), await kept()]).toEqual([2, []]);
  });

  it('while no one knows what subscriptions there are, nothing is removed (EVENT-9)', async () => {
    await begin();
    app.clock.advance(31 * day);
    const { services } = app;
    const unknown = { ...services.relays, isAlive: () => false, names: () => [] };
    expect(
      await pruneEvents({ db: services.db, clock: services.clock, config: services.config, relays: unknown }),
    ).toBe(0);
    expect(await kept()).toEqual([1, 2]);
  });
});
