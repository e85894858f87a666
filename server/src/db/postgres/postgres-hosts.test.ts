import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { certificate } from '../../../../harness/broker-program.ts';
import { PostgresServer } from '../../../../harness/postgres-server.ts';
import { PostgresPlace, selectCounter, setCounter } from '../../../test/support/postgres-place.ts';
import { TestClock } from '../../../test/support/test-clock.ts';
import { Secret } from '../../base/secret.ts';
import type { Database } from '../database.ts';
import { postgresAddresses } from '../postgres-address.ts';
import { migrate } from '../schema/migrate.ts';
import { openPostgres } from './postgres.ts';

describe('the address of a store in PostgreSQL', () => {
  it.each([
    ['postgres://u:p@one:5432,two:5433/x', ['postgres://u:p@one:5432/x', 'postgres://u:p@two:5433/x']],
    ['postgresql://one,two/x?target_session_attrs=read-write', ['postgresql://one/x', 'postgresql://two/x']],
    ['postgres://[::1]:5432,10.0.0.1/x', ['postgres://[::1]:5432/x', 'postgres://10.0.0.1/x']],
    [
      'postgres://one,two/x?sslmode=require',
      ['postgres://one/x?sslmode=require&uselibpqcompat=true', 'postgres://two/x?sslmode=require&uselibpqcompat=true'],
    ],
  ])('%s names these servers, in their order', (address, expected) => {
    expect(postgresAddresses(address)).toEqual(expected);
  });

  it.each([
    'mysql://one/x',
    'postgres:///x',
    'postgres://one,,two/x',
    'postgres://one two/x',
    'postgres://one:123456/x',
    'postgres://one/x?target_session_attrs=standby',
    'postgres://one/x#y',
  ])('%s is none', (address) => {
    expect(postgresAddresses(address)).toBeNull();
  });
});

describe('several servers in one address', () => {
  let place: PostgresPlace;
  let other: PostgresServer;
  let db: Database | null;
  const hostOf = (url: string) => new URL(url).host;
  const both = (first: string, second: string) => second.replace(hostOf(second), `${first},${hostOf(second)}`);

  beforeAll(async () => {
    other = await PostgresServer.begin({ settings: ['default_transaction_read_only=on'] });
  });
  afterAll(() => other.close());
  beforeEach(async () => {
    place = await PostgresPlace.make();
    await other.run(`create database ${place.name}`, 'postgres?options=-c%20default_transaction_read_only%3Doff');
    db = null;
  });
  afterEach(async () => {
    await db?.close();
    await place.remove();
  });

  it('the first is not there: the second is used (STORE-12)', async () => {
    db = await openPostgres(new Secret(both('127.0.0.1:1', place.url)));
    await migrate(db, new TestClock());
    await setCounter(db, 'user', 5);
    expect(await place.run('select value from counters')).toEqual([{ value: '5' }]);
  });

  it('the first takes no writes: the second is used, for reading too (STORE-12)', async () => {
    db = await openPostgres(new Secret(both(hostOf(other.url()), place.url)));
    await migrate(db, new TestClock());
    await setCounter(db, 'user', 5);
    expect((await db.first(selectCounter, { name: 'user' }))?.value).toBe(5);
    expect(await place.run('select value from counters')).toEqual([{ value: '5' }]);
  });

  it('none is there, or none takes writes: refuses to start in one line (STORE-10)', async () => {
    await expect(openPostgres(new Secret(both('127.0.0.1:1', other.url(place.name))))).rejects.toThrow(
      /^DATABASE_URL cannot be used \(127\.0\.0\.1:1,[^\n]+\): the server takes no writes \(25006\)\. To mend it: [^\n]+$/,
    );
    await expect(openPostgres(new Secret('postgres://postgres@127.0.0.1:1,127.0.0.1:2/x'))).rejects.toThrow(
      'DATABASE_URL cannot be used (127.0.0.1:1,127.0.0.1:2, user postgres, database x): nothing listens at 127.0.0.1:2 (ECONNREFUSED). To mend it: start PostgreSQL there, or correct host and port in it',
    );
  });

  it('the one in use goes away: anyone who asks next is given the other one, without a restart (STORE-12)', async () => {
    const first = await PostgresServer.begin();
    await first.run(`create database ${place.name}`);
    db = await openPostgres(new Secret(both(hostOf(first.url()), place.url)));
    await migrate(db, new TestClock());
    await setCounter(db, 'user', 1);
    // What a standby has already when it takes over.
    const standby = await place.openMigrated();
    await setCounter(standby, 'user', 2);
    await first.close();
    const node = db;
    const read = () => node.first(selectCounter, { name: 'user' }).catch(() => undefined);
    await vi.waitUntil(async () => (await read())?.value === 2, { timeout: 5_000 });
    await setCounter(db, 'user', 3);
    expect((await standby.first(selectCounter, { name: 'user' }))?.value).toBe(3);
  });
});

describe('PostgreSQL over TLS', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.begin({ isTls: true });
  });
  afterAll(() => server.close());

  const open = async (parameters: string) => {
    const db = await openPostgres(new Secret(`${server.url()}?${parameters}`));
    try {
      const tls = 'select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = $$latchkey$$';
      return (await server.run(tls)).map(({ ssl }) => ssl);
    } finally {
      await db.close();
    }
  };

  it('sslmode=require encrypts, anyone who signed the certificate, as libpq has it', async () => {
    expect(await open('sslmode=require')).toEqual([true]);
  });

  it('sslmode=verify-full with its authority lets in, and without it refuses in one line (STORE-10)', async () => {
    expect(await open(`sslmode=verify-full&sslrootcert=${certificate.file}`)).toEqual([true]);
    await expect(open('sslmode=verify-full')).rejects.toThrow(
      /^DATABASE_URL cannot be used \([^)]*\): the certificate is not accepted here: [^\n]+ \(\S*CERT\S*\)\. To mend it: /,
    );
  });

  it('sslmode=disable speaks in clear', async () => {
    expect(await open('sslmode=disable')).toEqual([false]);
  });
});
