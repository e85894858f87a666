// Asks PostgreSQL for tests that wait for the answer: see store-connection.ts.
import { workerData } from 'node:worker_threads';
import pg from 'pg';

/** @typedef {{ url: string, client: pg.Client, isIn: boolean, isChanged: boolean }} Entry */
/** @typedef {{ number: number, kind: string, url: string, text: string, values: unknown[] }} Request */

const { port, turn } = workerData;
/** @type {Map<number, Entry>} */
const clients = new Map();
/**
 * By its address, a connection to each database that nobody uses any more: a new one takes longer than what it is for.
 * @type {Map<string, pg.Client>}
 */
const idle = new Map();

const types = new pg.TypeOverrides();
types.setTypeParser(pg.types.builtins.INT8, Number);
types.setTypeParser(pg.types.builtins.NUMERIC, Number);

/** A writer leaves another number, as the service itself does, so that no node uses its cache any longer. */
const marking = 'update writer set mark = floor(random() * 281474976710655)::bigint where id = 1';

async function connect(/** @type {string} */ connectionString) {
  const client = new pg.Client({ connectionString, types, lock_timeout: 5_000, statement_timeout: 15_000 });
  client.on('error', () => {});
  await client.connect();
  return client;
}

/** One that is still there; its server may have ended meanwhile. */
async function takeIdle(/** @type {string} */ url) {
  const client = idle.get(url);
  idle.delete(url);
  return client?.query('select 1').then(
    () => client,
    () => undefined,
  );
}

async function open(/** @type {number} */ number, /** @type {string} */ url) {
  const client = (await takeIdle(url)) ?? (await connect(url));
  clients.set(number, { url, client, isIn: false, isChanged: false });
}

/** Keeps a connection for reuse, unless its state differs from that of a new one. */
async function close(/** @type {number} */ number) {
  const entry = clients.get(number);
  clients.delete(number);
  if (!entry) return;
  const { url, client, isIn, isChanged } = entry;
  if (isIn || isChanged || idle.has(url)) {
    await client.end();
    return;
  }
  idle.set(url, client);
}

async function write(/** @type {Entry} */ entry, /** @type {string} */ text, /** @type {unknown[]} */ values) {
  const { client } = entry;
  if (entry.isIn) return client.query(text, values);
  await client.query('begin');
  try {
    await client.query(marking);
    const result = await client.query(text, values);
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback');
    throw error;
  }
}

async function ask(/** @type {Request} */ { number, text, values }) {
  const entry = clients.get(number);
  if (!entry) throw new Error('there is no such connection');
  const [word = ''] = text.trim().toLowerCase().split(/\s/, 1);
  if (word === 'begin') {
    await entry.client.query('begin');
    entry.isIn = true;
    return entry.client.query(marking);
  }
  if (word === 'commit' || word === 'rollback') {
    entry.isIn = false;
    return entry.client.query(word);
  }
  if (word === 'set') entry.isChanged = true;
  if (['select', 'explain', 'show', 'set'].includes(word)) return entry.client.query(text, values);
  return write(entry, text, values);
}

async function response(/** @type {Request} */ request) {
  const { number, kind, url } = request;
  if (kind === 'open') return open(number, url);
  return kind === 'close' ? close(number) : ask(request);
}

port.on('message', async (/** @type {Request} */ request) => {
  try {
    const result = await response(request);
    const last = Array.isArray(result) ? result.at(-1) : result;
    port.postMessage({ rows: last?.rows ?? [], changes: last?.rowCount ?? 0 });
  } catch (error) {
    const { message = String(error), code } = Object(error);
    port.postMessage({ message, code });
  }
  Atomics.store(turn, 0, 1);
  Atomics.notify(turn, 0);
});
