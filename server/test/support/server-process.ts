import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { collect } from '../../../harness/processes.ts';
import { ServiceProcess } from '../../../harness/service-process.ts';
import { secondConnection } from './second-connection.ts';
import type { Json } from './test-app.ts';
import { dropTestStores, testStore } from './test-store.ts';

const root = resolve(import.meta.dirname, '../../..');
const startMsMax = 20_000;
const running = new Set<ServerProcess>();

/** Compiles server and command unless what was compiled last is still the same source. */
export function ensureServerIsBuilt(): void {
  const build = "const { ensureBuilt } = await import('./scripts/setup.mjs'); await ensureBuilt();";
  execFileSync(process.execPath, ['--input-type=module', '--eval', build], { cwd: root });
}

/** End of a process, with its output. */
interface End {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

type Environment = Readonly<Record<string, string>>;

/** The store of the tests belongs to the data directory, where one is named and no other store is. */
async function withStore(environment: Environment): Promise<Environment> {
  const dataDir = environment['DATA_DIR'];
  const isNamed = dataDir === undefined || 'DATABASE_URL' in environment;
  return isNamed ? environment : { ...(await testStore(dataDir)), ...environment };
}

/** The built server as a process of its own, with nothing of this process's environment. */
export class ServerProcess extends ServiceProcess {
  readonly ended: Promise<End>;

  private constructor(environment: Environment, cwd: string) {
    super({ env: environment, cwd });
    running.add(this);
    const program = this.spawn();
    const [stdout, stderr] = [collect(program.stdout), collect(program.stderr)];
    this.ended = program.ended.then(({ code, signal }) => {
      running.delete(this);
      return { code, signal, stdout: stdout(), stderr: stderr() };
    });
  }

  /** Starts a server and waits until it listens. Throws what it said when it ends instead. */
  static async start(environment: Environment, cwd = tmpdir()): Promise<ServerProcess> {
    const server = new ServerProcess(await withStore(environment), cwd);
    await server.listening;
    return server;
  }

  /** Starts a server that is expected to end. */
  static async startAndEnd(environment: Environment, cwd = tmpdir()): Promise<End> {
    const server = new ServerProcess(await withStore(environment), cwd);
    const giveUp = setTimeout(() => server.signal('SIGKILL'), startMsMax);
    try {
      return await server.ended;
    } finally {
      clearTimeout(giveUp);
    }
  }

  /** Sends a signal and waits for the end. */
  async end(signal: NodeJS.Signals): Promise<End> {
    this.signal(signal);
    return this.ended;
  }
}

/** A directory that is gone after `use`, as are servers that a failed test left behind. */
export async function withDirectory(use: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
  try {
    await use(directory);
  } finally {
    for (const server of running) server.signal('SIGKILL');
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
