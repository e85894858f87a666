import { existsSync } from 'node:fs';
import { second, systemClock } from '../../../server/src/base/clock.ts';
import type { Config } from '../../../server/src/config/config.ts';
import type { Database } from '../../../server/src/db/database.ts';
import { isHeld } from '../../../server/src/db/files/store-check.ts';
import { hasServers } from '../../../server/src/db/postgres/postgres-servers.ts';
import { type Finding, failed, fine, warning } from './check.ts';

const responseMsMax = 3 * second;
const bytesMax = 10_000;

/** Response of a server about its state. */
interface ServerReply {
  readonly isReady: boolean;
  readonly aheadMs: number;
}

/** Returns the address of HOST and PORT from this machine; `null` for a port that only the server knows. */
function nearAddress({ host, port }: Config): string | null {
  const everywhere: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  const near = everywhere[host] ?? host;
  return port === 0 ? null : `http://${near.includes(':') ? `[${near}]` : near}:${port}`;
}

/** Asks an address whether a service runs there; `null`: none, or another program. */
async function ask(address: string): Promise<ServerReply | null> {
  try {
    const askedMs = systemClock.now();
    const options = { redirect: 'manual', signal: AbortSignal.timeout(responseMsMax) } as const;
    const response = await fetch(`${address}/health/live`, options);
    const text = await response.text();
    const halfWayMs = (askedMs + systemClock.now()) / 2;
    const sent = text.length > bytesMax ? null : /"timestamp":"([^"]+)"/.exec(text)?.[1];
    const theirMs = Date.parse(sent ?? '');
    if (response.status !== 200 || Number.isNaN(theirMs)) return null;
    const ready = await fetch(`${address}/health/ready`, { ...options, signal: AbortSignal.timeout(responseMsMax) });
    await ready.body?.cancel();
    return { isReady: ready.status === 200, aheadMs: theirMs - halfWayMs };
  } catch {
    return null;
  }
}

interface Seen {
  readonly near: ServerReply | null;
  /** `null`: a shared store that does not tell. */
  readonly isRunning: boolean | null;
  /** The response came from HOST and PORT. */
  readonly isNearby: boolean;
}

/** The store in the words of the reader: as a place, as what is configured, and what to give for another. */
function storeWords({ dataDir, databaseUrl }: Config) {
  if (databaseUrl === null) {
    return { place: dataDir, named: `DATA_DIR ${dataDir}`, short: 'this data directory', given: 'data directory' };
  }
  const place = 'the database of DATABASE_URL';
  return { place, named: place, short: place, given: 'DATABASE_URL' };
}

function findingOf(config: Config, { near, isRunning, isNearby }: Seen): Finding {
  const { baseUrl, host, port } = config;
  const { place, named, short, given } = storeWords(config);
  if (near && !near.isReady)
    return failed('The server reports that it is not ready', 'Read its log: /health/ready is 503');
  if (near && isRunning === false) {
    return warning(
      `A server answers, but none runs on ${named}`,
      `Give the environment and the ${given} of that server`,
    );
  }
  if (near && isNearby) return fine(`A server runs on ${place} and answers`);
  if (near) return fine(`A server runs and answers at ${baseUrl}`);
  if (isRunning !== true) return fine(`No server runs on ${short}`);
  const cure = 'Set HOST and PORT as for the server, or read its log';
  return warning(`A server runs on ${short}, but none answers at ${host}:${port} or ${baseUrl}`, cure);
}

/** Whether a server runs on the store; `null`: unknown. Rule: FIT-108. */
async function isServed({ databaseUrl, dataDir }: Config, db: Database | null): Promise<boolean | null> {
  if (databaseUrl === null) return existsSync(dataDir) && isHeld(dataDir);
  return db === null ? null : hasServers(db.read);
}

/**
 * Checks that a server runs on the store and responds. Rules: CLI-21, FIT-108.
 * @param db the store; `null` where it cannot be read
 * @returns as `value` the milliseconds that its clock is ahead; `null`: no server responded
 */
export async function checkServer(
  config: Config,
  db: Database | null,
): Promise<{ readonly finding: Finding; readonly value: number | null }> {
  const address = nearAddress(config);
  const [nearby, distant] = await Promise.all([address === null ? null : ask(address), ask(config.baseUrl)]);
  const near = nearby ?? distant;
  const isRunning = await isServed(config, db);
  const finding = findingOf(config, { near, isRunning, isNearby: nearby !== null });
  return { finding, value: near?.aheadMs ?? null };
}
