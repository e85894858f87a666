// Loaded into a server with --import: appends each statement that SQLite is given to the file in the variable
// STATEMENTS_FILE, one line of JSON each. It costs time, so nothing is timed meanwhile.
import { appendFileSync } from 'node:fs';
import { requireFromServer } from './peers/record-route.mjs';

const file = process.env['STATEMENTS_FILE'] ?? '';
// The very module that the server loads: another copy would have prototypes of its own.
const Sqlite = requireFromServer('better-sqlite3');

function note(/** @type {string} */ sql) {
  appendFileSync(file, `${JSON.stringify(sql)}\n`);
}

/**
 * @param {any} prototype what is watched
 * @param {string} name of its method
 * @param {(statement: { source: string }, args: readonly string[]) => string} sqlOf
 */
function watch(prototype, name, sqlOf) {
  const original = prototype[name];
  prototype[name] = function watched(/** @type {string[]} */ ...args) {
    note(sqlOf(this, args));
    return original.apply(this, args);
  };
}

const connection = new Sqlite(':memory:');
const statements = Object.getPrototypeOf(connection.prepare('SELECT 1'));
connection.close();
for (const name of ['run', 'all', 'get', 'iterate']) watch(statements, name, (statement) => statement.source);
watch(Sqlite.prototype, 'exec', (_, [sql = '']) => sql);
