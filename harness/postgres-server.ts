import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { certificate } from './broker-program.ts';

const startMsMax = 30_000;
/** Where Debian has the programs of the server, which are in nobody's PATH. */
const debian = '/usr/lib/postgresql';

interface PostgresOptions {
  /** Speaks TLS too, with the certificate of the tests. */
  readonly isTls?: boolean;
  /** Further settings, as in `max_connections=10`. */
  readonly settings?: readonly string[];
}

/** The newest version that is installed. */
function programs(): string {
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const found = versions.map((version) => join(debian, version, 'bin')).find((bin) => existsSync(join(bin, 'initdb')));
  if (found === undefined) throw new Error('PostgreSQL is missing: run apt-get install -y postgresql, or npm test');
  return found;
}

/** PostgreSQL refuses to run as root: then it is whom Debian made for it. */
function owner(): { readonly uid: number; readonly gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const idOf = (what: string) => Number(execFileSync('id', [what, 'postgres'], { encoding: 'utf8' }));
  return { uid: idOf('-u'), gid: idOf('-g') };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return typeof address === 'object' && address ? address.port : 0;
}

function putCertificate(dataDir: string, who: ReturnType<typeof owner>): void {
  for (const [from, name] of [
    [certificate.file, 'server.crt'],
    [certificate.keyFile, 'server.key'],
  ] as const) {
    const file = join(dataDir, name);
    cpSync(from, file);
    chmodSync(file, 0o600);
    if (who) chownSync(file, who.uid, who.gid);
  }
}

/** A real PostgreSQL server of its own, on a free port of the loopback interface. Ends with this process. */
export class PostgresServer {
  readonly port: number;
  readonly #bin = programs();
  readonly #owner = owner();
  readonly #directory = mkdtempSync(join(tmpdir(), 'latchkey-postgres-'));
  readonly #options: PostgresOptions;
  #child: ChildProcess | null = null;
  #said = '';

  private constructor(port: number, options: PostgresOptions) {
    this.port = port;
    this.#options = options;
  }

  /** Makes a cluster and starts it. What it stores does not outlive a fall of the machine. */
  static async begin(options: PostgresOptions = {}): Promise<PostgresServer> {
    const server = new PostgresServer(await freePort(), options);
    server.#make();
    await server.start();
    return server;
  }

  /** The address of a database, for its owner, who needs no password. */
  url(database = 'postgres'): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`;
  }

  get #dataDir(): string {
    return join(this.#directory, 'data');
  }

  #make(): void {
    if (this.#owner) chownSync(this.#directory, this.#owner.uid, this.#owner.gid);
    const args = ['-D', this.#dataDir, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync'];
    execFileSync(join(this.#bin, 'initdb'), args, { ...this.#owner, cwd: this.#directory, stdio: 'pipe' });
    if (this.#options.isTls) putCertificate(this.#dataDir, this.#owner);
  }

  /** Starts it, on the same port each time, and waits until it answers. */
  async start(): Promise<void> {
    const { isTls = false, settings = [] } = this.#options;
    const given = ['fsync=off', 'full_page_writes=off', 'max_connections=300', 'jit=off', 'listen_addresses=127.0.0.1'];
    given.push(`unix_socket_directories=${this.#directory}`, `ssl=${isTls ? 'on' : 'off'}`, ...settings);
    const args = ['-D', this.#dataDir, '-p', String(this.port), ...given.flatMap((setting) => ['-c', setting])];
    const who = this.#owner ? [`--reuid=${this.#owner.uid}`, `--regid=${this.#owner.gid}`, '--clear-groups'] : [];
    const child = spawn('setpriv', [...who, '--pdeathsig', 'KILL', '--', join(this.#bin, 'postgres'), ...args], {
      cwd: this.#directory,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#said = (this.#said + text).slice(-5_000);
      });
    }
    await this.#untilItAnswers(child);
  }

  async #untilItAnswers(child: ChildProcess): Promise<void> {
    const untilMs = performance.now() + startMsMax;
    for (;;) {
      try {
        await this.run('select 1');
        return;
      } catch (error) {
        if (child.exitCode !== null || performance.now() > untilMs)
          throw new Error(`PostgreSQL did not start: ${this.#said}`, { cause: error });
        await setTimeout(50);
      }
    }
  }

  /** Answers the rows of a statement, as its owner. */
  async run(sql: string, database = 'postgres'): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: this.url(database) });
    client.on('error', () => {});
    await client.connect();
    try {
      return (await client.query(sql)).rows;
    } finally {
      await client.end();
    }
  }

  /** Ends it; with SIGINT in an orderly way that waits for nobody, with SIGQUIT on the spot. */
  async stop(signal: 'SIGINT' | 'SIGQUIT' = 'SIGINT'): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child?.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }

  /** Ends it and removes everything. */
  async close(): Promise<void> {
    await this.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
