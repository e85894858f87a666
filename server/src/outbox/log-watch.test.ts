import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { MonotonicClock } from '../../test/support/event-reader.ts';
import { secondConnection } from '../../test/support/second-connection.ts';
import { TestApp } from '../../test/support/test-app.ts';
import { second } from '../base/clock.ts';
import { type LogWatch, logWatch } from './log-watch.ts';

let app: TestApp;
let watch: LogWatch;

beforeAll(async () => {
  app = await TestApp.start();
  await app.setUp();
});
beforeEach(() => {
  watch = logWatch(app.services.db, pino({ level: 'silent' }));
});
afterEach(() => watch.close());
afterAll(() => app.close());

const never = new AbortController().signal;
const bump = () => {
  const store = secondConnection(app);
  store.exec("UPDATE counters SET value = value + 1 WHERE name = 'event'");
  store.close();
};

describe('the watch of the event log', () => {
  it('answers at once where it is there already, or where no one waits any more', async () => {
    expect(await watch.wait({ until: () => true, signal: never })).toBe(true);
    expect(await watch.wait({ until: () => false, signal: AbortSignal.abort() })).toBe(false);
    expect(await watch.wait({ until: () => false, msMax: 0, signal: never })).toBe(false);
  });

  it('sees what this process commits, and what another one does (EVENT-9)', async () => {
    await watch.wait({ until: () => watch.newest >= 2, signal: never });
    for (const commit of [
      async () => bump(),
      () =>
        app.services.db.transaction((tx) =>
          tx
            .updateTable('counters')
            .set((eb) => ({ value: eb('value', '+', 1) }))
            .where('name', '=', 'event')
            .execute(),
        ),
    ]) {
      const { newest, version: mark } = watch;
      const seen = watch.wait({ until: () => watch.newest > newest, signal: never });
      await commit();
      expect([await seen, watch.newest - newest]).toEqual([true, 1]);
      expect(watch.version).not.toBe(mark);
    }
  });

  it('tells all who wait, each by what they wait for', async () => {
    await watch.wait({ until: () => watch.newest >= 2, signal: never });
    const from = watch.newest;
    const waits = [1, 2, 1].map((more) => watch.wait({ until: () => watch.newest >= from + more, signal: never }));
    bump();
    expect(await Promise.all([waits[0], waits[2]])).toEqual([true, true]);
    bump();
    expect(await waits[1]).toBe(true);
  });

  it('gives up when the time is over, by a clock that no one sets', async () => {
    const monotonic = new MonotonicClock();
    let result: boolean | null = null;
    const over = watch.wait({ until: () => false, msMax: 10 * second, signal: never }).then((response) => {
      result = response;
    });
    app.clock.advance(60 * second);
    await watch.wait({ until: () => false, msMax: 150, signal: never });
    expect(result).toBeNull();
    monotonic.advance(10 * second);
    await over;
    expect(result).toBe(false);
    app.clock.advance(-60 * second);
    monotonic.restore();
  });

  it('lets anyone who leaves go at once, and keeps nothing of them', async () => {
    const leaving = new AbortController();
    const waiting = watch.wait({ until: () => false, signal: leaving.signal });
    leaving.abort();
    expect(await waiting).toBe(false);
    // No follower, no query.
    const mark = vi.spyOn(app.services.db, 'dataVersion');
    const own = logWatch(app.services.db, pino({ level: 'silent' }));
    const gone = new AbortController();
    const last = own.wait({ until: () => false, signal: gone.signal });
    gone.abort();
    await last;
    mark.mockClear();
    bump();
    expect(own.newest).toBe(0);
    own.close();
    mark.mockRestore();
  });

  it('goes on after the store has failed (D3)', async () => {
    await watch.wait({ until: () => watch.newest >= 2, signal: never });
    const from = watch.newest;
    const store = secondConnection(app);
    store.exec('ALTER TABLE counters RENAME TO elsewhere');
    const waiting = watch.wait({ until: () => watch.newest > from, signal: never });
    await watch.wait({ until: () => false, msMax: 150, signal: never });
    store.exec('ALTER TABLE elsewhere RENAME TO counters');
    store.close();
    bump();
    expect(await waiting).toBe(true);
  });

  it('lets everyone go when it is closed', async () => {
    const waiting = [1, 2].map(() => watch.wait({ until: () => false, signal: never }));
    watch.close();
    expect(await Promise.all(waiting)).toEqual([false, false]);
  });
});
