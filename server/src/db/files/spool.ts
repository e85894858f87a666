import Sqlite from 'better-sqlite3';

/** Something that is put aside. */
interface SpoolRecord {
  readonly kind: string;
  /** The place where it was found, for messages. */
  readonly place: string;
  /** Unique within the kind; `null`: it has none. */
  readonly id: string | null;
  /** Unique within the kind, too; `null`: it has none. */
  readonly key: string | null;
  /** JSON. */
  readonly content: string;
}

/** A record with the number that it has here. Numbers count up from 1. */
export type SpooledRecord = SpoolRecord & { readonly number: number };

/** Records of one process, too many for its memory. They are in a file that has no name, and gone when it is closed. */
export interface Spool {
  /**
   * Adds a record; returns the place of an earlier record with its id or key, and then adds nothing. `null`: it was
   * added.
   */
  add(record: SpoolRecord): string | null;
  /** Up to `limit` records of a kind in the order in which they were added, from after a number. */
  after(kind: string, number: number, limit: number): readonly SpooledRecord[];
  /** Returns the records of a kind that have one of some ids. */
  withIds(kind: string, ids: readonly string[]): readonly SpooledRecord[];
  drop(number: number): void;
  count(kind: string): number;
  close(): void;
}

/** A file of its own is no store: nothing in it has to survive. */
function openFile(): Sqlite.Database {
  const file = new Sqlite('');
  file.pragma('journal_mode = OFF');
  file.pragma('synchronous = OFF');
  file.pragma('cache_size = -65536');
  file.exec(
    'CREATE TABLE records (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, place TEXT NOT NULL, id TEXT, key TEXT, content TEXT NOT NULL)',
  );
  file.exec('CREATE UNIQUE INDEX records_id ON records (kind, id) WHERE id IS NOT NULL');
  file.exec('CREATE UNIQUE INDEX records_key ON records (kind, key) WHERE key IS NOT NULL');
  file.exec('CREATE INDEX records_order ON records (kind, number)');
  // One transaction from beginning to end: uncommitted records are not written out one by one.
  file.exec('BEGIN');
  return file;
}

/** Opens an empty place for records. */
export function openSpool(): Spool {
  const file = openFile();
  const insert = file.prepare<[SpoolRecord]>(
    'INSERT INTO records (kind, place, id, key, content) VALUES (@kind, @place, @id, @key, @content) ON CONFLICT DO NOTHING',
  );
  const holder = file
    .prepare<[SpoolRecord], string>(
      'SELECT place FROM records WHERE kind = @kind AND id = @id UNION SELECT place FROM records WHERE kind = @kind AND key = @key',
    )
    .pluck();
  const after = file.prepare<[string, number, number], SpooledRecord>(
    'SELECT * FROM records WHERE kind = ? AND number > ? ORDER BY number LIMIT ?',
  );
  const withIds = file.prepare<[string, string], SpooledRecord>(
    'SELECT * FROM records WHERE kind = ? AND id IN (SELECT value FROM json_each(?))',
  );
  const drop = file.prepare<[number]>('DELETE FROM records WHERE number = ?');
  const count = file.prepare<[string], number>('SELECT count(*) FROM records WHERE kind = ?').pluck();
  return {
    add: (record) => (insert.run(record).changes === 1 ? null : (holder.get(record) ?? record.place)),
    after: (kind, number, limit) => after.all(kind, number, limit),
    withIds: (kind, ids) => withIds.all(kind, JSON.stringify(ids)),
    drop: (number) => void drop.run(number),
    count: (kind) => count.get(kind) ?? 0,
    close: () => void file.close(),
  };
}
