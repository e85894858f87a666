import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Tell } from '../harness/command-line.ts';
import { rate } from './formats.ts';
import { startServer } from './latchkey.ts';
import { fetchBody, runLoad } from './load.ts';
import type { LoadResult, Measured, Rounds, Sides } from './rows.ts';
import { printedToken, seededStore } from './seeded-store.ts';
import { type Caller, timedRequest } from './timed-request.ts';

const sizes = { small: { users: 100, tokens: 1_000 }, large: { users: 100_000, tokens: 1_000_000 } };
const warmUpSeconds = 3;
/** Each commit has the server forget what it read, so that tokens and users are looked up in the store again and again. */
const changesPerSecond = 20;

/** A server under load, and who changes records of it meanwhile. */
interface Changing extends Measured {
  readonly caller: Caller;
  readonly changedId: string;
}

function userIdOf(token: string): string {
  const [, payload = ''] = token.replace(/^[^.]*_(?=ey)/, '').split('.');
  return JSON.parse(Buffer.from(payload, 'base64url').toString()).userId;
}

async function startOn(name: keyof typeof sizes, tell: Tell): Promise<Changing> {
  const dataDir = await seededStore(sizes[name], tell);
  const token = await printedToken(dataDir);
  const headers = { authorization: `Bearer ${token}` };
  const started = await startServer({ dataDir });
  const server = { ...started, name: `latchkey, ${name}`, headers, path: `/api/v1/users/${userIdOf(token)}` };
  const caller = { ...started, headers, agent: new Agent({ keepAlive: true, maxSockets: 1 }) };
  const json = { fullName: 'Changes Often', email: 'changes-often@example.com' };
  const { body } = await timedRequest(caller, { method: 'POST', path: '/users', json });
  return { ...server, body: await fetchBody(server), caller, changedId: JSON.parse(body.toString())._id };
}

/** Changes another user's record at a rate; returns what ends that. */
function keepChanging({ caller, changedId }: Changing): () => Promise<void> {
  const over = new AbortController();
  const changing = (async () => {
    for (let number = 0; !over.signal.aborted; number++) {
      const json = { designation: `Job ${number}` };
      await timedRequest(caller, { method: 'PATCH', path: `/users/${changedId}/designation`, json });
      await sleep(1_000 / changesPerSecond);
    }
  })();
  return async () => {
    over.abort();
    await changing;
  };
}

async function turn(server: Changing, seconds: number): Promise<LoadResult> {
  const stop = keepChanging(server);
  try {
    return await runLoad(server, { seconds });
  } finally {
    await stop();
  }
}

/**
 * P4: token checks with 1,000,000 tokens and 100,000 users, and with 1,000 and 100, in turns, while records change.
 * Returns one `{ subject, peer }` a round.
 */
export async function measureGrowth({ seconds, rounds, tell }: Rounds): Promise<readonly Sides[]> {
  const [peer, subject] = [await startOn('small', tell), await startOn('large', tell)];
  for (const server of [peer, subject]) await runLoad(server, { seconds: warmUpSeconds });
  const results: Sides[] = [];
  for (let round = 1; round <= rounds; round++) {
    const result = { peer: await turn(peer, seconds), subject: await turn(subject, seconds) };
    tell(`P4: round ${round} of ${rounds}  large ${rate(result.subject)}, small ${rate(result.peer)}`);
    results.push(result);
  }
  return results;
}
