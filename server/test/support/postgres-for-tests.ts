import type { TestProject } from 'vitest/node';
import { PostgresServer } from '../../../harness/postgres-server.ts';
import { Secret } from '../../src/base/secret.ts';
import { openPostgres } from '../../src/db/postgres/postgres.ts';
import { migrate } from '../../src/db/schema/migrate.ts';
import { TestClock } from './test-clock.ts';

const template = 'latchkey_template';

/** Settings for a server that is gone in minutes, with hundreds of databases that live for seconds. */
const ofShortLife = ['autovacuum=off', 'checkpoint_timeout=1d', 'max_wal_size=4GB', 'bgwriter_lru_maxpages=0'];

declare module 'vitest' {
  interface ProvidedContext {
    /** The address of the tests' PostgreSQL, as its owner. */
    readonly postgres?: string;
    /** A database there that is migrated already, of which others are copies: that takes a third of the time. */
    readonly postgresTemplate?: string;
  }
}

/** Starts PostgreSQL once for all tests that run on it; answers how to end it. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await PostgresServer.begin({ settings: ofShortLife });
  await server.run(`create database ${template}`);
  const db = await openPostgres(new Secret(server.url(template)));
  await migrate(db, new TestClock());
  await db.close();
  project.provide('postgres', server.url());
  project.provide('postgresTemplate', template);
  return () => server.close();
}
