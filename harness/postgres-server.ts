import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, cpSync, existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { certificate } from './broker-program.ts';
import { freePort, type Owner, type Program, removeFolder, start, temporaryFolder } from './processes.ts';

const host = '127.0.0.1';
const startMsMax = 30_000;
/** Where Debian has the programs of the server, which are in no PATH. */
const debian = '/usr/lib/postgresql';
/** What it stores does not outlive a fall of the machine. */
const ofShortLife = ['fsync=off', 'full_page_writes=off', 'max_connections=300', 'jit=off'];
/** Writes to disk before it answers. Small enough to be started twice, and quick to find the other one again. */
const ofDurable = ['shared_buffers=32MB', 'max_connections=100', 'jit=off', 'wal_retrieve_retry_interval=200ms'];

/** A row as it is answered. */
export type Row = Record<string, unknown>;

/** A folder on a file system of the caller's choice. */
interface Place {
  readonly folder: string;
}

/** What may be other than usual. */
export interface PostgresOptions {
  /** Speaks TLS too, with the certificate of the tests. */
  readonly isTls?: boolean;
  /** Writes to disk before it answers. */
  readonly isDurable?: boolean;
  /** Further settings, as in `max_connections=10`. */
  readonly settings?: readonly string[];
  /** Where its files are, if not in a temporary folder. */
  readonly disk?: Place | undefined;
  /** Where its write-ahead log is, if not with its files. */
  readonly logDisk?: Place | undefined;
}

/** The newest version that is installed. */
function programs(): string {
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const found = versions.map((version) => join(debian, version, 'bin')).find((bin) => existsSync(join(bin, 'initdb')));
  if (found === undefined) throw new Error('PostgreSQL is missing: run apt-get install -y postgresql, or npm test');
  return found;
}

/** PostgreSQL refuses to run as root: then it is the user that Debian made for it. */
function ownerOf(): Owner | null {
  if (process.getuid?.() !== 0) return null;
  const idOf = (what: string) => Number(execFileSync('id', [what, 'postgres'], { encoding: 'utf8' }));
  return { uid: idOf('-u'), gid: idOf('-g') };
}

/** A real PostgreSQL server of its own, on a free port of the loopback interface. Ends with this process. */
export class PostgresServer {
  readonly port: number;
  readonly folder = temporaryFolder();
  protected running: Program | null = null;
  readonly #options: PostgresOptions;
  readonly #bin = programs();
  readonly #owner = ownerOf();

  /** One that has no files yet: see `make`. */
  constructor(port: number, options: PostgresOptions = {}) {
    this.port = port;
    this.#options = options;
    for (const place of [{ folder: this.folder }, options.disk, options.logDisk]) {
      if (place === undefined) continue;
      // What it lies in may be root's alone, too.
      for (const path of [dirname(place.folder), place.folder]) if (path !== tmpdir()) this.#own(path);
    }
  }

  /** Makes an empty cluster and starts it. */
  static async begin(options: PostgresOptions = {}): Promise<PostgresServer> {
    const server = new PostgresServer(await freePort(), options);
    server.make();
    await server.start();
    return server;
  }

  /** The address of a database, for its owner, who needs no password. */
  url(database = 'postgres'): string {
    return `postgres://postgres@${this.address}/${database}`;
  }

  get address(): string {
    return `${host}:${this.port}`;
  }

  /** Whether its first process is there. */
  get isRunning(): boolean {
    return this.running?.isRunning ?? false;
  }

  protected get dataDir(): string {
    return join(this.#options.disk?.folder ?? this.folder, 'data');
  }

  /** Runs one of PostgreSQL's programs. */
  protected command(program: string, args: readonly string[]): void {
    execFileSync(join(this.#bin, program), args, { ...this.#owner, cwd: this.folder, stdio: 'pipe' });
  }

  #own(path: string): void {
    if (this.#owner) chownSync(path, this.#owner.uid, this.#owner.gid);
  }

  /** Makes an empty cluster. */
  make(): void {
    const { logDisk, isDurable = false, isTls = false } = this.#options;
    const log = logDisk ? ['-X', join(logDisk.folder, 'log'), '--wal-segsize=1'] : [];
    const given = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', ...log];
    this.command('initdb', ['-D', this.dataDir, ...given, ...(isDurable ? [] : ['--no-sync'])]);
    if (!isTls) return;
    for (const [from, name] of [
      [certificate.file, 'server.crt'],
      [certificate.keyFile, 'server.key'],
    ] as const) {
      const file = join(this.dataDir, name);
      cpSync(from, file);
      chmodSync(file, 0o600);
      this.#own(file);
    }
  }

  /** Starts it, on the same port each time, and waits until it answers. */
  async start(further: readonly string[] = []): Promise<void> {
    const { isTls = false, isDurable = false, settings = [] } = this.#options;
    const given = [`listen_addresses=${host}`, `unix_socket_directories=${this.folder}`, `ssl=${isTls ? 'on' : 'off'}`];
    given.push(...(isDurable ? ofDurable : ofShortLife), ...settings, ...further);
    const args = ['-D', this.dataDir, '-p', String(this.port), ...given.flatMap((setting) => ['-c', setting])];
    const options = { cwd: this.folder, owner: this.#owner, endSignal: 'SIGQUIT' } as const;
    this.running = start(join(this.#bin, 'postgres'), args, options);
    await this.until('it answers', 'select 1');
  }

  /** Waits until the rows of a statement are as they should be. */
  protected async until(
    what: string,
    sql: string,
    isTrue: (rows: readonly Row[]) => boolean = () => true,
  ): Promise<void> {
    const untilMs = performance.now() + startMsMax;
    for (;;) {
      const [rows, cause] = await this.run(sql).then(
        (found) => [found, null] as const,
        (error: unknown) => [null, error] as const,
      );
      if (rows !== null && isTrue(rows)) return;
      if (!this.isRunning || performance.now() > untilMs)
        throw new Error(`PostgreSQL ended or took too long until ${what}: ${this.running?.said()}`, { cause });
      await sleep(20);
    }
  }

  /** Returns the rows of a statement, run as its owner. */
  async run(sql: string, database = 'postgres'): Promise<Row[]> {
    const client = new pg.Client({ connectionString: this.url(database), connectionTimeoutMillis: 5_000 });
    client.on('error', () => {});
    await client.connect();
    try {
      return (await client.query(sql)).rows;
    } finally {
      await client.end();
    }
  }

  /** Ends it: `fast` ends all sessions and leaves everything written, `immediate` leaves what a crash leaves. */
  async stop(mode: 'fast' | 'immediate' = 'fast'): Promise<void> {
    await this.running?.end(mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
    this.running = null;
  }

  /** Ends it and removes everything. */
  async close(): Promise<void> {
    await this.stop('immediate');
    removeFolder(this.folder);
  }
}
