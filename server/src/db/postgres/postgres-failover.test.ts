import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { PostgresServer } from '../../../../harness/postgres-server.ts';
import { selectCounter, selectKept, setCounter } from '../../../test/support/postgres-place.ts';
import { SilentWire } from '../../../test/support/silent-wire.ts';
import { TestApp } from '../../../test/support/test-app.ts';
import { TestClock } from '../../../test/support/test-clock.ts';
import { Secret } from '../../base/secret.ts';
import type { Database } from '../database.ts';
import { isStoreFailure, StoreLostError } from '../failures.ts';
import { migrate } from '../schema/migrate.ts';
import { openPostgres } from './postgres.ts';

let server: PostgresServer;
let wire: SilentWire;
let db: Database;
let made = 0;

beforeAll(async () => {
  server = await PostgresServer.begin();
  await server.run('create database whole');
  const whole = await openPostgres(new Secret(server.url('whole')));
  await migrate(whole, new TestClock());
  await whole.close();
});
afterAll(() => server.close());

const store = () => `failover_${made}`;
const failure = (work: Promise<unknown>) => work.then(() => null).catch((error: unknown) => error);
const stored = async (name: string) => (await db.first(selectCounter, { name }))?.value;
const selectAll = () => db.read.selectFrom('counters').selectAll().execute();
/** Sets something for every session of the server, those that are open already included. */
async function setForAll(setting: string): Promise<void> {
  await server.run(`alter system ${setting}`);
  await server.run('select pg_reload_conf()');
}
const sessions = (condition: string) =>
  server.run(`select 1 from pg_stat_activity where application_name = 'latchkey' and ${condition}`);

beforeEach(async () => {
  made += 1;
  await server.run(`create database ${store()} template whole`);
  wire = await SilentWire.lay(server.port);
  db = await openPostgres(new Secret(`postgres://postgres@127.0.0.1:${wire.port}/${store()}`));
  await setCounter(db, 'user', 1);
});
afterEach(async () => {
  await wire.close();
  await db.close();
  await server.run(`drop database ${store()} with (force)`);
});

describe('a server that answers nothing and closes nothing', () => {
  it('is given up: anyone who waits is told, whatever they wait for, although no one checks a credential (STORE-12, STORE-18)', async () => {
    await selectAll();
    wire.hush();
    const errors = await Promise.all([failure(selectAll()), failure(setCounter(db, 'user', 2))]);
    expect(errors.map(isStoreFailure)).toEqual([true, true]);
  });

  it('lets no one in by what was kept (STORE-12, AUTH-27)', async () => {
    expect(await db.first(selectKept, { name: 'user' })).toEqual({ value: 1 });
    wire.hush();
    expect(await failure(db.first(selectKept, { name: 'user' }))).toBeInstanceOf(StoreLostError);
  });

  it('is used again once it answers, on new connections, and what was given up is not done twice (STORE-1, STORE-18)', async () => {
    wire.hush();
    const errors = await Promise.all(Array.from({ length: 6 }, () => failure(setCounter(db, 'user', 2))));
    expect(errors.every(isStoreFailure)).toBe(true);
    wire.speak();
    await vi.waitUntil(async () => (await failure(setCounter(db, 'user', 3))) === null, { timeout: 10_000 });
    expect(await stored('user')).toBe(3);
    expect(await db.first(selectKept, { name: 'user' })).toEqual({ value: 3 });
  });

  it('leaves no transaction behind that keeps other nodes from writing for long (STORE-12, STORE-18)', async () => {
    const other = await openPostgres(new Secret(server.url(store())));
    const hasBegun = vi.fn<() => void>();
    const stuck = failure(
      db.transaction(async (tx) => {
        wire.hush();
        hasBegun();
        await tx.updateTable('counters').set({ value: 5 }).execute();
      }),
    );
    await vi.waitUntil(() => hasBegun.mock.calls.length > 0);
    await vi.waitUntil(async () => (await failure(setCounter(other, 'user', 4))) === null, { timeout: 10_000 });
    expect(isStoreFailure(await stuck)).toBe(true);
    expect(await other.first(selectCounter, { name: 'user' })).toEqual({ value: 4 });
    await other.close();
  });

  it('is not given up for one slow statement, while it answers others (STORE-18)', async () => {
    const done = vi.fn<() => void>();
    const slow = db.read
      .selectFrom('counters')
      .select((eb) => eb.fn<string>('pg_sleep', [eb.val(2.5)]).as('slept'))
      .execute()
      .finally(done);
    while (done.mock.calls.length === 0) expect(await db.first(selectKept, { name: 'user' })).toEqual({ value: 1 });
    expect(await slow).toHaveLength(1);
  });
});

describe('a connection that is reset under a request', () => {
  it('503, and neither 400 nor 500: it was no fault of the caller; the next one is answered (STORE-18, ERR-25)', async () => {
    const DATABASE_URL = `postgres://postgres@127.0.0.1:${wire.port}/${store()}`;
    const app = await TestApp.start({ DATABASE_URL, ENCRYPTION_KEY: '0123456789abcdef'.repeat(4) });
    const admin = await app.setUp();
    const calls = [
      () => admin.get('/org'),
      () => admin.post('/userGroups', { name: `Pilots ${made}`, type: 'custom' }),
    ];
    for (const call of calls) {
      const refused = await vi.waitUntil(async () => {
        wire.hush();
        const response = call();
        await vi.waitUntil(() => wire.isHolding);
        wire.reset();
        wire.speak();
        const { status, headers } = await response;
        expect([200, 201, 409, 503]).toContain(status);
        return status === 503 && headers;
      }, 10_000);
      expect(refused.get('retry-after')).toBe('5');
    }
    expect((await admin.get('/org')).status).toBe(200);
    await app.close();
  });
});

describe('a standby that is away', () => {
  afterEach(() => setForAll('reset synchronous_standby_names'));

  it('a commit that waits for it is given up and may be kept, and no other change is made before that is known (STORE-1, STORE-18)', async () => {
    await setForAll("set synchronous_standby_names = 'nobody'");
    await vi.waitUntil(async () => {
      const [row] = await server.run('show synchronous_standby_names');
      return row?.['synchronous_standby_names'] === 'nobody';
    });
    expect(isStoreFailure(await failure(setCounter(db, 'user', 2)))).toBe(true);
    expect(isStoreFailure(await failure(setCounter(db, 'user', 3)))).toBe(true);
    // What is not known to be kept is not seen either, and is read all the same.
    expect(await stored('user')).toBe(1);
    await setForAll('reset synchronous_standby_names');
    await vi.waitUntil(async () => (await sessions("wait_event = 'SyncRep'")).length === 0, { timeout: 10_000 });
    expect(await stored('user')).toBe(2);
    await setCounter(db, 'user', 4);
    expect(await stored('user')).toBe(4);
  });
});

describe('a server that takes no writes any more', () => {
  afterEach(() => setForAll('reset default_transaction_read_only'));

  it('is left, and used again once it takes them (STORE-12, STORE-18)', async () => {
    await Promise.all(Array.from({ length: 5 }, selectAll));
    await setForAll('set default_transaction_read_only = on');
    await vi.waitUntil(async () => (await failure(setCounter(db, 'user', 2))) !== null);
    expect(isStoreFailure(await failure(setCounter(db, 'user', 2)))).toBe(true);
    // No session of it is used any more, and each new one is asked whether it can write.
    expect(isStoreFailure(await failure(selectAll()))).toBe(true);
    await setForAll('reset default_transaction_read_only');
    await vi.waitUntil(async () => (await failure(setCounter(db, 'user', 3))) === null);
    expect(await stored('user')).toBe(3);
  });
});
