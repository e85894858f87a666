import Sqlite from 'better-sqlite3';
import { StartupError } from '../../base/errors.ts';
import { appendChecksum, copyVerified } from './checksum-file.ts';
import type { Progress } from './store-copy.ts';

/** Marks a store as a back-up: `LKBK`. */
const applicationId = 0x4c4b424b;

/** The facts that a back-up holds about itself. */
export interface BackupFacts {
  /** ISO 8601 in UTC with milliseconds. */
  readonly madeAt: string;
  /** The version of its schema. */
  readonly schema: number;
  readonly users: number;
  readonly tokens: number;
  readonly events: number;
  readonly auditRecords: number;
}

/** Files of the data directory other than the store, by name. Their contents are secrets. */
export type BackupKeys = ReadonlyMap<string, string>;

const tableOf = { users: 'users', tokens: 'personal_access_tokens', events: 'outbox', auditRecords: 'audit_log' };

function countOf(store: Sqlite.Database, table: string): number {
  return Number(store.prepare(`SELECT count(*) FROM "${table}"`).pluck().get());
}

function requireSound(store: Sqlite.Database, file: string): void {
  const found = store.pragma('integrity_check(1)', { simple: true });
  if (found !== 'ok') throw new StartupError(`The store in ${file} is damaged (${String(found).split('\n')[0]})`);
}

function readFacts(store: Sqlite.Database, madeAt: string): BackupFacts {
  return {
    madeAt,
    schema: Number(store.prepare('SELECT max(version) FROM schema_migrations').pluck().get()),
    users: countOf(store, tableOf.users),
    tokens: countOf(store, tableOf.tokens),
    events: countOf(store, tableOf.events),
    auditRecords: countOf(store, tableOf.auditRecords),
  };
}

/**
 * Makes a back-up of a copy of the store, in its place: adds the keys, looks at every page, and seals it. It is on the disk
 * afterwards. Throws StartupError for a copy that is damaged.
 */
export function finishBackup(file: string, keys: BackupKeys, madeAt: string): BackupFacts {
  const store = new Sqlite(file);
  let facts: BackupFacts;
  try {
    store.pragma('journal_mode = DELETE');
    requireSound(store, file);
    facts = readFacts(store, madeAt);
    store.pragma(`application_id = ${applicationId}`);
    store.exec('CREATE TABLE latchkey_backup (name TEXT PRIMARY KEY, content TEXT NOT NULL)');
    const insert = store.prepare('INSERT INTO latchkey_backup VALUES (?, ?)');
    for (const [name, content] of [['facts', JSON.stringify(facts)], ...keys]) insert.run(name, content);
  } finally {
    store.close();
  }
  appendChecksum(file);
  return facts;
}

/** The contents of a back-up: its facts, and the keys. */
export interface UnpackedBackup {
  readonly facts: BackupFacts;
  readonly keys: BackupKeys;
}

function takeApart(store: Sqlite.Database, from: string): UnpackedBackup {
  if (store.pragma('application_id', { simple: true }) !== applicationId) {
    throw new StartupError(`${from} is no back-up of Latchkey`);
  }
  requireSound(store, from);
  const rows = store.prepare('SELECT name, content FROM latchkey_backup').raw().all();
  const files = new Map(rows.map((row) => (Array.isArray(row) ? [String(row[0]), String(row[1])] : ['', ''])));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what `finishBackup` wrote, as the seal proves
  const facts = JSON.parse(files.get('facts') ?? '') as BackupFacts;
  files.delete('facts');
  // The keys must not stay behind in free pages of the store.
  store.pragma('secure_delete = ON');
  store.exec('DROP TABLE latchkey_backup');
  store.pragma('application_id = 0');
  return { facts, keys: files };
}

/**
 * Unpacks a back-up: the store becomes the new file `to`, unchanged. The back-up itself stays as it is. Throws
 * StartupError for a file that is no back-up, incomplete or damaged; the content of `to` is useless then.
 */
export function unpackBackup(from: string, to: string, progress: Progress): UnpackedBackup {
  copyVerified(from, to, progress);
  const store = new Sqlite(to);
  try {
    return takeApart(store, from);
  } finally {
    store.close();
  }
}
