import Sqlite from 'better-sqlite3';

type Connection = Sqlite.Database;
type Run = (this: Sqlite.Statement, ...args: unknown[]) => unknown;

const methods = ['run', 'all', 'get', 'iterate'] as const;

function statementPrototype(): Record<(typeof methods)[number], Run> {
  const connection = new Sqlite(':memory:');
  const statement: unknown = Object.getPrototypeOf(connection.prepare('SELECT 1'));
  connection.close();
  return statement as Record<(typeof methods)[number], Run>;
}

/**
 * Calls `before` ahead of every prepared statement that this process runs, on whatever connection. What it throws is
 * that statement's failure. Answers how to stop.
 */
export function watchStatements(before: (sql: string, connection: Connection) => void): () => void {
  const prototype = statementPrototype();
  const originals = methods.map((name) => [name, prototype[name]] as const);
  for (const [name, original] of originals) {
    prototype[name] = function (this: Sqlite.Statement, ...args: unknown[]) {
      before(this.source, this.database);
      return original.apply(this, args);
    };
  }
  return () => {
    for (const [name, original] of originals) prototype[name] = original;
  };
}

/**
 * Does something ahead of a statement, as another process may: of those that match, the one with this number, from 1 on.
 * Answers how to stop, which tells whether it came to that.
 */
export function actAhead(pattern: RegExp, number: number, act: () => void): () => boolean {
  let [met, isActing] = [0, false];
  const stop = watchStatements((sql) => {
    if (isActing || !pattern.test(sql)) return;
    met += 1;
    if (met !== number) return;
    isActing = true;
    act();
    isActing = false;
  });
  return () => {
    stop();
    return met >= number;
  };
}

/** Everything in a store file but the record of migrations: the rows of each table, by its name. */
export function tablesOf(file: string): Readonly<Record<string, readonly unknown[]>> {
  const connection = new Sqlite(file, { readonly: true });
  try {
    const names = connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all() as string[];
    const stored = names.filter((name) => name !== 'schema_migrations' && !name.startsWith('sqlite_'));
    return Object.fromEntries(stored.map((name) => [name, connection.prepare(`SELECT * FROM "${name}"`).all()]));
  } finally {
    connection.close();
  }
}
