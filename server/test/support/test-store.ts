import { createHash } from 'node:crypto';
import { copyFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import pg from 'pg';
import { inject } from 'vitest';
import { storeFile } from '../../src/db/files/data-dir.ts';

/** Address of the tests' PostgreSQL; unset, they run on the embedded store. */
const server = process.env['LATCHKEY_TEST_POSTGRES'] ?? inject('postgres');
const template = inject('postgresTemplate');
const embeddedTemplate = inject('embeddedTemplate');

/** Nodes that share a store are given the key that they encrypt with. */
const encryptionKey = createHash('sha256').update('what the nodes of the tests encrypt with').digest('hex');

/** The tests run on PostgreSQL. */
export const isOnPostgres = server !== undefined;

/** The address of the tests' PostgreSQL, as its owner, for tests that are about PostgreSQL itself. */
export function postgresServer(): string {
  if (server === undefined) throw new Error('this test runs on PostgreSQL only');
  return server;
}

/** The data directories whose databases were made by this process and are still there. */
const made = new Set<string>();

/** One database for each data directory, so that a service that is started again finds what it left. */
function nameOf(dataDir: string): string {
  return `lk_${createHash('sha1').update(resolve(dataDir)).digest('hex').slice(0, 20)}`;
}

async function asOwner(text: string): Promise<void> {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}

/** Makes a data directory; with an embedded store that is migrated already, unless the store is elsewhere. */
export function newDataDir(isElsewhere: boolean): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
  if (!isElsewhere && embeddedTemplate) copyFileSync(embeddedTemplate, join(dataDir, storeFile));
  return dataDir;
}

/** The address of the database that belongs to a data directory. */
export function databaseUrl(dataDir: string): string {
  const url = new URL(server ?? '');
  url.pathname = `/${nameOf(dataDir)}`;
  return url.href;
}

/** The variables that name the store of a data directory, which is made where it isn't there. */
export async function testStore(dataDir: string): Promise<Record<string, string>> {
  if (!isOnPostgres) return {};
  if (!made.has(dataDir)) {
    await asOwner(
      `create database ${nameOf(dataDir)}${template ? ` template ${template} strategy file_copy` : ''}`,
    ).catch((error: unknown) => {
      if (!(error instanceof Error && 'code' in error && error.code === '42P04')) throw error;
    });
    made.add(dataDir);
  }
  return { DATABASE_URL: databaseUrl(dataDir), ENCRYPTION_KEY: encryptionKey };
}

/** Removes the store of a data directory. */
export async function dropTestStore(dataDir: string): Promise<void> {
  made.delete(dataDir);
  if (isOnPostgres) await asOwner(`drop database if exists ${nameOf(dataDir)} with (force)`);
}

/** Removes the stores of all data directories in a directory. */
export async function dropTestStores(directory: string): Promise<void> {
  for (const dataDir of made) if (resolve(dataDir).startsWith(resolve(directory))) await dropTestStore(dataDir);
}
