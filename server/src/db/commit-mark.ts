import type Sqlite from 'better-sqlite3';

/**
 * How long a commit of another process may go unseen. Who writes beside the server, as operator commands do, answers
 * only when this has passed.
 */
const markHeldMs = 1;

/**
 * SQLite's `data_version` of the connection that only reads: it differs as soon as any other connection, of this
 * process or another, has committed. Asking takes a lock and gives it back, so under load the answer is held for a
 * moment. A commit of this process ends that moment, and so counts at once.
 */
export class CommitMark {
  readonly #statement: Sqlite.Statement;
  #mark = 0;
  #heldUntilMs = 0;

  constructor(reader: Sqlite.Database) {
    this.#statement = reader.prepare('PRAGMA data_version').pluck();
  }

  read(): number {
    // Monotonic, as time-outs are: the wall clock may step.
    const nowMs = performance.now();
    if (nowMs >= this.#heldUntilMs) {
      this.#mark = Number(this.#statement.get());
      this.#heldUntilMs = nowMs + markHeldMs;
    }
    return this.#mark;
  }

  forget(): void {
    this.#heldUntilMs = 0;
  }
}
