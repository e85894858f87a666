import { existsSync } from 'node:fs';
import { second, systemClock } from '../../../server/src/base/clock.ts';
import type { Config } from '../../../server/src/config/config.ts';
import { isHeld } from '../../../server/src/db/files/store-check.ts';
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
  readonly isRunning: boolean;
  /** The response came from HOST and PORT. */
  readonly isNearby: boolean;
}

function findingOf(config: Config, { near, isRunning, isNearby }: Seen): Finding {
  const { dataDir, baseUrl, host, port } = config;
  const place = `${host}:${port}`;
  if (near && !near.isReady)
    return failed('The server reports that it is not ready', 'Read its log: /health/ready is 503');
  if (near && !isRunning) {
    const cure = 'Give the environment and the data directory of that server';
    return warning(`A server answers, but none runs on DATA_DIR ${dataDir}`, cure);
  }
  if (near && isNearby) return fine(`A server runs on ${dataDir} and answers`);
  if (near) return fine(`A server runs and answers at ${baseUrl}`);
  if (!isRunning) return fine('No server runs on this data directory');
  const cure = 'Set HOST and PORT as for the server, or read its log';
  return warning(`A server runs on this data directory, but none answers at ${place} or ${baseUrl}`, cure);
}

/**
 * Checks that a server runs on the data directory and responds. Rule: CLI-21.
 * @returns as `value` the milliseconds that its clock is ahead; `null`: no server responded
 */
export async function checkServer(
  config: Config,
): Promise<{ readonly finding: Finding; readonly value: number | null }> {
  const address = nearAddress(config);
  const [nearby, distant] = await Promise.all([address === null ? null : ask(address), ask(config.baseUrl)]);
  const near = nearby ?? distant;
  const isRunning = config.databaseUrl !== null || (existsSync(config.dataDir) && isHeld(config.dataDir));
  const finding = findingOf(config, { near, isRunning, isNearby: nearby !== null });
  return { finding, value: near?.aheadMs ?? null };
}
