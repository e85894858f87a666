import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiClient, administrator, type User } from '../harness/api-client.ts';
import { freePort, type Program, temporaryFolder } from '../harness/processes.ts';
import { builtServer } from '../harness/service-process.ts';
import { type Core, startNode } from './pinned.ts';
import type { Target } from './rows.ts';

const startSecondsMax = 60;

async function untilReady(program: Program, client: ApiClient, logFile: string): Promise<void> {
  const untilMs = performance.now() + startSecondsMax * 1_000;
  while (performance.now() < untilMs && program.isRunning) {
    if ((await client.health('ready').catch(() => 0)) === 200) return;
    await sleep(5);
  }
  const lastOutput = readFileSync(logFile, 'utf8').trim().split('\n').slice(-20).join('\n');
  const what = program.isRunning ? `was not ready in ${startSecondsMax} s` : 'ended at start';
  throw new Error(`Latchkey ${what}:\n${lastOutput}`);
}

/** A session, and the user that it is of. */
async function signIn(client: ApiClient, user: User) {
  const { accessToken } = await client.signIn(user);
  const payload = Buffer.from(accessToken.split('.')[1] ?? '', 'base64url').toString('utf8');
  return { session: accessToken, userId: String(JSON.parse(payload).userId) };
}

/** Creates the organization; returns the id of its administrator and a token with these scopes. */
export async function createOrganization(client: ApiClient, scopes: readonly string[] = ['user:read']) {
  await client.setUp();
  const { session, userId } = await signIn(client, administrator);
  return { userId, token: await client.issueToken(session, { name: 'bench', scopes }) };
}

interface Options {
  /** An empty one unless given. */
  readonly dataDir?: string;
  readonly core?: Core;
  /** Go to node. */
  readonly nodeOptions?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A server that runs, without limits on requests and with its log (level `info`) in a file. */
interface RunningServer {
  readonly program: Program;
  readonly client: ApiClient;
  /** The address with /api/v1. */
  readonly api: string;
  readonly pid: number;
  readonly port: number;
}

/** Starts the built server as an operator would. */
export async function startServer({ dataDir, core = 'server', nodeOptions = [], env = {} }: Options = {}) {
  const folder = temporaryFolder();
  const port = await freePort();
  const logFile = join(folder, 'server.log');
  const ports = { PORT: String(port), METRICS_PORT: '0' };
  const own = { ...ports, DATA_DIR: dataDir ?? join(folder, 'data'), RATE_LIMIT: 'off' };
  const program = startNode([...nodeOptions, builtServer], { core, cwd: folder, env: { ...own, ...env }, logFile });
  const client = new ApiClient(`http://127.0.0.1:${port}`);
  await untilReady(program, client, logFile);
  return { program, client, api: client.api, pid: program.pid, port } satisfies RunningServer;
}

/** The same with an organization of one user, whose record is what a target of load answers. */
export interface Latchkey extends RunningServer, Target {
  readonly user: User;
}

/** Starts the built server with an organization of one user, who has a token with these scopes. */
export async function startLatchkey({
  scopes,
  ...options
}: Options & { readonly scopes?: readonly string[] } = {}): Promise<Latchkey> {
  const server = await startServer(options);
  const { userId, token } = await createOrganization(server.client, scopes);
  const headers = { authorization: `Bearer ${token}` };
  return { ...server, name: 'latchkey', path: `/api/v1/users/${userId}`, headers, user: administrator };
}
