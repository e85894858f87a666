import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MonotonicClock } from '../../test/support/event-reader.ts';
import { watchStatements } from '../../test/support/statement-watch.ts';
import { type Client, TestApp } from '../../test/support/test-app.ts';
import { second } from '../base/clock.ts';
import { WriteHealth } from './write-health.ts';

describe('what is known of writing', () => {
  const full = new Sqlite.SqliteError('database or disk is full', 'SQLITE_FULL');
  let monotonic: MonotonicClock;
  let tries = 0;
  let health: WriteHealth;
  beforeEach(() => {
    monotonic = new MonotonicClock({ stands: true });
    tries = 0;
    health = new WriteHealth(async () => {
      tries += 1;
    });
  });
  afterEach(() => monotonic.restore());

  const refuse = async (error: Error) => expect(health.watch(() => Promise.reject(error))).rejects.toBe(error);

  it('is nothing bad of others who write, and of statements that are wrong (STORE-15)', async () => {
    for (const code of ['SQLITE_BUSY', 'SQLITE_BUSY_SNAPSHOT', 'SQLITE_LOCKED', 'SQLITE_CONSTRAINT_UNIQUE']) {
      await refuse(new Sqlite.SqliteError('x', code));
    }
    for (const code of ['40001', '55P03', '57P01', '08006', '23505']) {
      await refuse(Object.assign(new Error('x'), { code }));
    }
    await refuse(new Error('a rule refused it'));
    await expect(health.check()).resolves.toBeUndefined();
    expect(tries).toBe(0);
  });

  it('is bad from the first refusal on, is tried once a second at most, and is good again once something is written (STORE-15)', async () => {
    monotonic.advance(10 * second);
    await refuse(full);
    await expect(health.check()).rejects.toBe(full);
    await expect(health.check()).rejects.toBe(full);
    expect(tries).toBe(1);
    monotonic.advance(second);
    await expect(health.check()).rejects.toBe(full);
    expect(tries).toBe(2);
    await health.watch(async () => 'written');
    await expect(health.check()).resolves.toBeUndefined();
    expect(tries).toBe(2);
  });

  it.each([
    ['there is no room', '53100'],
    ['there is no memory', '53200'],
    ['the system fails', '58030'],
    ['it may only be read', '25006'],
  ])(
    'is bad where PostgreSQL says that %s, whatever is written meanwhile, for three seconds (STORE-15)',
    async (_, code) => {
      health = new WriteHealth(async () => {}, 3 * second);
      const error = Object.assign(new Error('x'), { code });
      await refuse(error);
      monotonic.advance(2 * second);
      await health.watch(async () => 'something small');
      await expect(health.check()).rejects.toBe(error);
      monotonic.advance(second);
      await health.watch(async () => 'something small');
      await expect(health.check()).resolves.toBeUndefined();
    },
  );
});

describe('a disk that is full', () => {
  let app: TestApp;
  let admin: Client;
  let stopWatching: (() => void) | undefined;
  beforeEach(async () => {
    app = await TestApp.start({ DATABASE_URL: '' });
    admin = await app.setUp();
  });
  afterEach(async () => {
    stopWatching?.();
    await app.close();
  });

  it('503: what would be written, and GET /health/ready; what is read is 200, and so is all once there is space (STORE-12, STORE-15, RUN-4, ERR-27)', async () => {
    const user = { fullName: 'Grace Hopper', email: 'grace@example.com' };
    const ready = () => app.anonymous.get('//health/ready');
    stopWatching = watchStatements((sql) => {
      if (/^commit$|^pragma user_version/i.test(sql)) throw new Sqlite.SqliteError('disk is full', 'SQLITE_FULL');
    });
    const refused = await admin.post('/users', user);
    expect([refused.status, refused.body.error.code, refused.headers.get('retry-after')]).toEqual([
      503,
      'UNAVAILABLE',
      '5',
    ]);
    expect([(await ready()).status, (await app.anonymous.get('//health/live')).status]).toEqual([503, 200]);
    const { status, body } = await admin.get('/users');
    expect([status, body.length]).toEqual([200, 1]);
    expect((await app.with('lkpat_eyJ.not.real').get('/org')).status).toBe(401);
    stopWatching();
    expect((await admin.post('/users', user)).status).toBe(201);
    expect((await ready()).status).toBe(200);
  });

  it('200: GET /health/ready finds out by itself that there is space again (STORE-15, RUN-4)', async () => {
    const monotonic = new MonotonicClock({ stands: true });
    stopWatching = watchStatements((sql) => {
      if (/^commit$|^pragma user_version/i.test(sql)) throw new Sqlite.SqliteError('disk is full', 'SQLITE_FULL');
    });
    await admin.post('/users', { fullName: 'Grace Hopper', email: 'grace@example.com' });
    const ready = async () => (await app.anonymous.get('//health/ready')).status;
    expect(await ready()).toBe(503);
    stopWatching();
    monotonic.advance(second);
    expect(await ready()).toBe(200);
    monotonic.restore();
  });
});
