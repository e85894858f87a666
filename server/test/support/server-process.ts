import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { secondConnection } from './second-connection.ts';
import { type Json, organization, password } from './test-app.ts';
import { dropTestStores, testStore } from './test-store.ts';

const root = resolve(import.meta.dirname, '../../..');
const startMsMax = 20_000;
const running = new Set<ChildProcess>();

/** Compiles server and command unless what was compiled last is still the same source. */
export function ensureServerIsBuilt(): void {
  const build = "const { ensureBuilt } = await import('./scripts/setup.mjs'); await ensureBuilt();";
  execFileSync(process.execPath, ['--input-type=module', '--eval', build], { cwd: root });
}

/** How a process ended, and all that it said. */
interface End {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

type Environment = Readonly<Record<string, string>>;

interface CallOptions {
  readonly body?: unknown;
  readonly token?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The store of the tests belongs to the data directory, where one is named and no other store is. */
async function withStore(environment: Environment): Promise<Environment> {
  const dataDir = environment['DATA_DIR'];
  const isNamed = dataDir === undefined || 'DATABASE_URL' in environment;
  return isNamed ? environment : { ...(await testStore(dataDir)), ...environment };
}

/** The built server as a process of its own, with nothing of this process's environment. */
export class ServerProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<End>;
  #stdout = '';
  #stderr = '';
  #url = '';

  private constructor(environment: Environment, cwd: string) {
    const env = { PATH: process.env['PATH'] ?? '', PORT: '0', ...environment };
    this.child = spawn(process.execPath, [join(root, 'dist/bin/server.js')], {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    running.add(this.child);
    this.child.once('exit', () => running.delete(this.child));
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    this.ended = once(this.child, 'close').then(() => ({
      code: this.child.exitCode,
      signal: this.child.signalCode,
      stdout: this.#stdout,
      stderr: this.#stderr,
    }));
  }

  /** Starts a server and waits until it listens. Throws what it said when it ends instead. */
  static async start(environment: Environment, cwd = tmpdir()): Promise<ServerProcess> {
    const server = new ServerProcess(await withStore(environment), cwd);
    const giveUp = setTimeout(() => server.child.kill('SIGKILL'), startMsMax);
    try {
      await Promise.race([server.#listening(), server.ended]);
    } finally {
      clearTimeout(giveUp);
    }
    if (server.#url === '') throw new Error(`the server did not start: ${server.#stdout}${server.#stderr}`);
    return server;
  }

  /** Starts a server that is expected to end by itself. */
  static async startAndEnd(environment: Environment, cwd = tmpdir()): Promise<End> {
    const server = new ServerProcess(await withStore(environment), cwd);
    const giveUp = setTimeout(() => server.child.kill('SIGKILL'), startMsMax);
    try {
      return await server.ended;
    } finally {
      clearTimeout(giveUp);
    }
  }

  async #listening(): Promise<void> {
    while (this.#url === '' && this.child.stdout) {
      await once(this.child.stdout, 'data');
      this.#url = /"address":"(http:[^"]+)"/.exec(this.#stdout)?.[1] ?? '';
    }
  }

  /** The address at which it listens. */
  get url(): string {
    return this.#url;
  }

  /** Sends a signal and waits for the end. */
  async end(signal: NodeJS.Signals): Promise<End> {
    this.child.kill(signal);
    return this.ended;
  }

  /** Calls `path` below /api/v1. */
  async call(
    method: string,
    path: string,
    { body, token, headers }: CallOptions = {},
  ): Promise<{ status: number; body: Json }> {
    const response = await fetch(`${this.#url}/api/v1${path}`, {
      method,
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json() };
  }

  /** Begins to sign in; answers the value of `x-session-token`. */
  async beginSignIn(): Promise<string> {
    const begun = await fetch(`${this.#url}/api/v1/userAccount/initAuth`, { method: 'POST' });
    await begun.text();
    return begun.headers.get('x-session-token') ?? '';
  }

  /** Goes on to sign the first administrator in. */
  authenticate(begun: string): Promise<{ status: number; body: Json }> {
    const body = { method: 'password', credentials: { password }, email: organization.contactEmail };
    return this.call('POST', '/userAccount/authenticate', { body, headers: { 'x-session-token': begun } });
  }

  /** Signs the first administrator in; answers the pair of tokens. */
  async signIn(): Promise<{ readonly accessToken: string; readonly refreshToken: string }> {
    const { status, body } = await this.authenticate(await this.beginSignIn());
    if (status !== 200) throw new Error(`not signed in: ${status} ${JSON.stringify(body)}`);
    return body;
  }

  /** Creates the organization and signs its administrator in; answers the access token. */
  async setUp(): Promise<string> {
    const { status } = await this.call('POST', '/org', { body: organization });
    if (status !== 200) throw new Error(`no organization: ${status}`);
    return (await this.signIn()).accessToken;
  }
}

/** A directory that is gone after `use`, as are servers that a failed test left behind. */
export async function withDirectory(use: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
  try {
    await use(directory);
  } finally {
    for (const child of running) child.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
    await dropTestStores(directory);
  }
}

/** Reads rows of a store that no server is using. */
export function readStore(dataDir: string, sql: string): Json[] {
  const connection = secondConnection({ dataDir });
  try {
    return connection.prepare(sql).all();
  } finally {
    connection.close();
  }
}
