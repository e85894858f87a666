import type Sqlite from 'better-sqlite3';

/**
 * SQLite's `data_version` of the connection that only reads: it differs as soon as any other connection, of this
 * process or another, has committed. Asking takes a lock and gives it back, so it is asked once in a turn of the event
 * loop, however many requests the turn serves: a commit of this process counts at once, one of another process from the
 * next turn on, which is before any request that was sent after it is read.
 */
export class DataVersion {
  readonly #statement: Sqlite.Statement;
  #version: number | null = null;
  readonly #forget = () => this.forget();

  constructor(reader: Sqlite.Database) {
    this.#statement = reader.prepare('PRAGMA data_version').pluck();
  }

  read(): number {
    if (this.#version === null) {
      this.#version = Number(this.#statement.get());
      setImmediate(this.#forget);
    }
    return this.#version;
  }

  /** To be called after each commit of this process. */
  forget(): void {
    this.#version = null;
  }
}
