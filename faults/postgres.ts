import { execFileSync } from 'node:child_process';
import { appendFileSync, chownSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { end, freePort, removeFolder, signal, start, temporaryFolder } from './processes.ts';

const host = '127.0.0.1';
const startMsMax = 30_000;
const debian = '/usr/lib/postgresql';
const standbyName = 'standby';

/** What holds the server's programs, and a command of it that lies in everybody's path. */
export const postgresPackage = { command: 'pg_ctlcluster', package: 'postgresql' };

/** Where Debian has the newest server that is installed. */
function programs() {
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const found = versions.map((version) => join(debian, version, 'bin')).find((bin) => existsSync(join(bin, 'initdb')));
  if (found === undefined) throw new Error('PostgreSQL is missing: apt-get install -y postgresql');
  return found;
}

/** PostgreSQL refuses to run as root: then it is whom Debian made for it. */
function owner() {
  if (process.getuid() !== 0) return null;
  const idOf = (what) => Number(execFileSync('id', [what, 'postgres'], { encoding: 'utf8' }));
  return { uid: idOf('-u'), gid: idOf('-g') };
}

/** The processes that a process has started, by the system's own record. */
function childrenOf(pid) {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(/\s+/).filter(Boolean).map(Number);
}

function signalEach(pids, name) {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch (error) {
      if (error.code !== 'ESRCH') throw error;
    }
  }
}

/** Small enough to be started twice, and quick to find the other one again. */
const own = ['shared_buffers = 32MB', 'jit = off', 'max_connections = 100', 'wal_retrieve_retry_interval = 200ms'];

/** One PostgreSQL server, which writes to disk before it answers. */
export class PostgresServer {
  child = null;
  #bin = programs();
  #owner = owner();

  /**
   * @param options.disk where its files are, if not in a temporary folder
   * @param options.logDisk where its write-ahead log is, if not beside them
   * @param options.settings further ones, such as `fsync=off`
   */
  constructor(port, { disk, logDisk, settings = [] } = {}) {
    this.port = port;
    this.folder = temporaryFolder();
    Object.assign(this, { disk, logDisk, settings });
    for (const folder of [this.folder, disk?.folder, logDisk?.folder].filter(Boolean)) {
      // What it lies in is root's alone, too.
      for (const path of [dirname(folder), folder].filter((one) => one !== tmpdir())) this.#own(path);
    }
  }

  #own(path) {
    if (this.#owner) chownSync(path, this.#owner.uid, this.#owner.gid);
  }

  get #dataDir() {
    return join(this.disk?.folder ?? this.folder, 'data');
  }

  get address() {
    return `${host}:${this.port}`;
  }

  #run(program, args) {
    execFileSync(join(this.#bin, program), args, { ...this.#owner, cwd: this.folder, stdio: 'pipe' });
  }

  /** Makes an empty store. */
  make() {
    const log = this.logDisk ? ['-X', join(this.logDisk.folder, 'log'), '--wal-segsize=1'] : [];
    const given = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', ...log];
    this.#run('initdb', ['-D', this.#dataDir, ...given]);
    // Like whatever initdb leaves, on the disk at once.
    appendFileSync(join(this.#dataDir, 'postgresql.conf'), `${own.join('\n')}\n`, { flush: true });
  }

  /** Becomes the standby of a server that runs. */
  follow(primary) {
    const source = `host=${host} port=${primary.port} user=postgres application_name=${standbyName}`;
    this.#run('pg_basebackup', ['-D', this.#dataDir, '-d', source, '-R', '-X', 'stream', '-c', 'fast']);
  }

  /** Starts it and waits until it answers. `isFollowed`: nothing is committed before its standby has it. */
  async start({ isFollowed = false } = {}) {
    const settings = [
      `listen_addresses=${host}`,
      `unix_socket_directories=${this.folder}`,
      `synchronous_standby_names=${isFollowed ? standbyName : ''}`,
      ...this.settings,
    ];
    const who = this.#owner ? [`--reuid=${this.#owner.uid}`, `--regid=${this.#owner.gid}`, '--clear-groups'] : [];
    const given = ['-D', this.#dataDir, '-p', String(this.port), ...settings.flatMap((setting) => ['-c', setting])];
    const args = [...who, '--', join(this.#bin, 'postgres'), ...given];
    this.child = start('setpriv', args, { cwd: this.folder });
    await this.#until('it answers', 'select 1');
  }

  async #until(what, text, isTrue = () => true) {
    const untilMs = performance.now() + startMsMax;
    for (;;) {
      const rows = await this.run(text).catch(() => null);
      if (rows !== null && isTrue(rows)) return;
      if (performance.now() > untilMs) throw new Error(`PostgreSQL took too long until ${what}: ${this.child.said()}`);
      await sleep(20);
    }
  }

  /** Waits until a standby has all that is committed. */
  async untilFollowed() {
    const text = `select 1 from pg_stat_replication where application_name = '${standbyName}' and sync_state = 'sync'`;
    await this.#until('it is followed', text, (rows) => rows.length === 1);
  }

  /** The rows of a statement. */
  async run(text, database = 'postgres') {
    const client = new pg.Client({ host, port: this.port, user: 'postgres', database, connectionTimeoutMillis: 5_000 });
    client.on('error', () => {});
    await client.connect();
    try {
      return (await client.query(text)).rows;
    } finally {
      await client.end();
    }
  }

  /** Ends it: `fast` lets nobody finish, and leaves everything written; `immediate` leaves what a crash leaves. */
  async stop(mode = 'fast') {
    await end(this.child, mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
  }

  get isRunning() {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Those that the system lists: the first, and what it has started. */
  get pids() {
    return this.isRunning ? [this.child.pid, ...childrenOf(this.child.pid)] : [];
  }

  /** Kills every process of it. */
  async kill() {
    const others = this.pids;
    signal(this.child, 'SIGKILL');
    signalEach(others, 'SIGKILL');
    await this.child.ended;
  }

  /** From a standby it becomes the server that writes. */
  async promote() {
    this.#run('pg_ctl', ['-D', this.#dataDir, '-w', 'promote']);
    await this.#until('it writes', 'show transaction_read_only', ([row]) => row.transaction_read_only === 'off');
  }

  async close() {
    if (this.child !== null) await this.stop('immediate');
    removeFolder(this.folder);
  }
}

/** A server and its standby. `isSynchronous`: nothing is answered before the standby has it too. */
export class PostgresPair {
  /** `primary`: options of the server that writes. */
  static async begin({ isSynchronous = true, primary = {} } = {}) {
    const pair = new PostgresPair();
    pair.isSynchronous = isSynchronous;
    pair.primary = new PostgresServer(await freePort(), primary);
    pair.standby = new PostgresServer(await freePort());
    pair.primary.make();
    await pair.primary.start();
    pair.standby.follow(pair.primary);
    await pair.standby.start();
    await pair.primary.stop();
    await pair.restart();
    await pair.primary.run('create database latchkey');
    return pair;
  }

  /** Starts the server that writes; waits for its standby. */
  async restart() {
    await this.primary.start({ isFollowed: this.isSynchronous });
    if (this.isSynchronous) await this.primary.untilFollowed();
  }

  /** The address of its store by way of some `host:port`s. */
  url(...addresses) {
    return `postgres://postgres@${addresses.join(',')}/latchkey?target_session_attrs=read-write`;
  }

  async close() {
    await this.standby.close();
    await this.primary.close();
  }
}
