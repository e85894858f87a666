import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../harness/command-line.ts';
import { PostgresServer } from '../harness/postgres-server.ts';
import { percent, rate } from './formats.ts';
import { startLatchkey } from './latchkey.ts';
import type { LoadOrders } from './load-generator.ts';
import { sampleRecord, startPeer } from './peers.ts';
import { runNode } from './pinned.ts';
import type { LoadResult, Measured, Rounds, Row, Sides, Target } from './rows.ts';

const generator = fileURLToPath(new URL('./load-generator.ts', import.meta.url));
const connections = 32;
const warmUpSeconds = 3;
/** Each run's generator is a new process: its own code has to get warm too before anything counts. */
const leadInSeconds = 0.5;

/** The body that `server` answers to what the generator will ask; throws when the status isn't 200. */
export async function fetchBody({ name, port, path, headers, payload }: Target): Promise<Buffer> {
  const sent = payload === undefined ? {} : { method: 'POST', body: payload };
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers, ...sent });
  const body = Buffer.from(await response.arrayBuffer());
  if (response.status !== 200)
    throw new Error(`${name} answered ${response.status}: ${body.toString('utf8').slice(0, 300)}`);
  return body;
}

async function startOnPostgres(): Promise<Target> {
  const postgres = await PostgresServer.begin({ isDurable: true });
  await postgres.run('create database latchkey');
  const server = await startLatchkey({ env: { DATABASE_URL: postgres.url('latchkey') } });
  return { ...server, name: 'latchkey-postgres' };
}

/** Latchkey answers a record of its own on each store, of the same form. */
const ours: Readonly<Record<string, () => Promise<Target>>> = {
  latchkey: startLatchkey,
  'latchkey-postgres': startOnPostgres,
};

async function startServer(name: string, record: object | null): Promise<Measured> {
  const server = await (ours[name]?.() ?? startPeer(name, record ?? sampleRecord));
  const body = await fetchBody(server);
  if (record !== null && !isDeepStrictEqual(JSON.parse(body.toString('utf8')), record)) {
    throw new Error(`${name} doesn't answer the same record as the others: ${body.toString('utf8')}`);
  }
  return { ...server, body };
}

/** Starts the named servers, Latchkey first: the peers answer the record that it answers. */
async function startServers(names: readonly string[]): Promise<readonly Measured[]> {
  const servers: Measured[] = [];
  let record: object = sampleRecord;
  if (names.includes('latchkey')) {
    const latchkey = await startServer('latchkey', null);
    record = JSON.parse(latchkey.body.toString('utf8'));
    servers.push(latchkey);
  }
  for (const name of names) {
    if (name !== 'latchkey') servers.push(await startServer(name, name in ours ? null : record));
  }
  return servers;
}

interface Run {
  readonly seconds: number;
  readonly perSecond?: number | null;
}

/**
 * One run of load against `server` (with its expected `body`), as fast as 32 connections go or, with `perSecond`, at that
 * rate. Returns what the generator measured.
 */
export async function runLoad(server: Measured, { seconds, perSecond = null }: Run): Promise<LoadResult> {
  const orders: LoadOrders = {
    host: '127.0.0.1',
    port: server.port,
    path: server.path,
    headers: server.headers,
    ...(server.payload === undefined ? {} : { payload: server.payload }),
    expectedBody: server.body.toString('base64'),
    connections,
    perSecond,
    leadInSeconds,
    seconds,
    serverPid: server.pid,
  };
  try {
    return JSON.parse(await runNode([generator], { core: 'generator', env: { LOAD: JSON.stringify(orders) } }));
  } catch (error) {
    throw new Error(`the run against ${server.name} broke: ${messageOf(error)}`, { cause: error });
  }
}

/** The order of the turns: Latchkey between its peers, so that it stands next to each that it is compared with. */
const turns = ['latchkey-postgres', 'bare-fastify', 'latchkey', 'better-auth'];

/**
 * Lets the servers that these rows compare take turns, `rounds` times. Returns what gives the rounds of a row. Throws as soon as a server answers anything but 200 and the expected body.
 */
export async function measureLoad(rows: readonly Row[], { seconds, rounds, tell }: Rounds) {
  const names = turns.filter((name) => rows.some((row) => row.subject === name || row.peer === name));
  tell(`starting ${names.join(', ')}`);
  const started = await startServers(names);
  const servers = names.flatMap((name) => started.filter((server) => server.name === name));
  for (const server of servers) await runLoad(server, { seconds: warmUpSeconds });
  const results: Map<string, LoadResult>[] = [];
  for (let round = 1; round <= rounds; round++) {
    const result = new Map<string, LoadResult>();
    for (const { name, ...server } of servers) {
      const seen = await runLoad({ name, ...server }, { seconds });
      result.set(name, seen);
      tell(`round ${round} of ${rounds}  ${describe(name, seen)}`);
    }
    results.push(result);
  }
  return ({ subject = '', peer = '' }: Row): readonly Sides[] =>
    results.flatMap((result) => {
      const sides = { subject: result.get(subject), peer: result.get(peer) };
      return sides.subject && sides.peer ? [{ subject: sides.subject, peer: sides.peer }] : [];
    });
}

function describe(name: string, result: LoadResult): string {
  const { p50Ms, p99Ms, serverCpuShare, generatorCpuShare } = result;
  return [
    name.padEnd(17),
    rate(result).padStart(12),
    `p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`,
    `(CPU: server ${percent(serverCpuShare)}, generator ${percent(generatorCpuShare)})`,
  ].join('  ');
}
