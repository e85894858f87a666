import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { startLatchkey } from './latchkey.ts';
import { sampleRecord, startPeer } from './peers.ts';
import { startPostgres } from './postgres-store.ts';
import { runNode } from './pinned.ts';

const generator = fileURLToPath(new URL('./load-generator.ts', import.meta.url));
const connections = 32;
const warmUpSeconds = 3;
/** Each run's generator is a new process: its own code has to get warm too before anything counts. */
const leadInSeconds = 0.5;

/** The body that `server` answers to what the generator will ask; throws when the status isn't 200. */
export async function fetchBody({ name, port, path, headers, payload }) {
  const sent = payload === undefined ? {} : { method: 'POST', body: payload };
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers, ...sent });
  const body = Buffer.from(await answer.arrayBuffer());
  if (answer.status !== 200)
    throw new Error(`${name} answered ${answer.status}: ${body.toString('utf8').slice(0, 300)}`);
  return body;
}

/** Latchkey answers a record of its own on each store, of the same form. */
const ours = {
  latchkey: () => startLatchkey(),
  'latchkey-postgres': async () => {
    const server = await startLatchkey({ env: { DATABASE_URL: await startPostgres() } });
    return { ...server, name: 'latchkey-postgres' };
  },
};

async function startServer(name, record) {
  const server = name in ours ? await ours[name]() : await startPeer(name, record);
  const body = await fetchBody(server);
  if (record !== null && !isDeepStrictEqual(JSON.parse(body.toString('utf8')), record)) {
    throw new Error(`${name} doesn't answer the same record as the others: ${body}`);
  }
  return { ...server, body };
}

/** Starts the named servers, Latchkey first: the peers answer the record that it answers. */
async function startServers(names) {
  const servers = [];
  let record = sampleRecord;
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

/**
 * One run of load against `server` (with its expected `body`), as fast as 32 connections go or, with `perSecond`, at that
 * rate. Returns what the generator measured.
 */
export async function runLoad(server, { seconds, perSecond = null }) {
  const orders = {
    host: '127.0.0.1',
    port: server.port,
    path: server.path,
    headers: server.headers,
    payload: server.payload,
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
    throw new Error(`the run against ${server.name} broke: ${error.message}`, { cause: error });
  }
}

/** The order of the turns: Latchkey between its peers, so that it stands next to each that it is compared with. */
const turns = ['latchkey-postgres', 'bare-fastify', 'latchkey', 'better-auth'];

/**
 * Lets the servers that these rows compare take turns, `rounds` times. Returns one map a round, from a server's name to
 * what the generator measured. Throws as soon as a server answers anything but 200 and the expected body.
 */
export async function measureLoad(rows, { seconds, rounds, tell }) {
  const names = turns.filter((name) => rows.some((row) => row.subject === name || row.peer === name));
  tell(`starting ${names.join(', ')}`);
  const started = await startServers(names);
  const servers = names.map((name) => started.find((server) => server.name === name));
  for (const server of servers) await runLoad(server, { seconds: warmUpSeconds });
  const results = [];
  for (let round = 1; round <= rounds; round++) {
    const result = {};
    for (const server of servers) {
      result[server.name] = await runLoad(server, { seconds });
      tell(`round ${round} of ${rounds}  ${describe(server.name, result[server.name])}`);
    }
    results.push(result);
  }
  return results;
}

function describe(name, { requestsPerSecond, p50Ms, p99Ms, serverCpuShare, generatorCpuShare }) {
  const percent = (share) => (share === null ? '?' : `${Math.round(share * 100)} %`);
  return [
    name.padEnd(17),
    `${Math.round(requestsPerSecond)} req/s`.padStart(12),
    `p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`,
    `(CPU: server ${percent(serverCpuShare)}, generator ${percent(generatorCpuShare)})`,
  ].join('  ');
}
