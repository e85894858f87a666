import { readFileSync } from 'node:fs';
import { type PostgresOptions, PostgresServer } from '../harness/postgres-server.ts';
import { freePort, isMissing } from '../harness/processes.ts';

const standbyName = 'standby';

/** What holds the server's programs, and a command of it that is in every path. */
export const postgresPackage = { command: 'pg_ctlcluster', package: 'postgresql' };

/** The processes that a process has started, by the system's own record. */
function childrenOf(pid: number): readonly number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(/\s+/).filter(Boolean).map(Number);
}

function killEach(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }
}

/** One of two servers, which writes to disk before it answers. */
class PairedServer extends PostgresServer {
  /** Becomes the standby of a server that runs. */
  follow(primary: PairedServer): void {
    const [host, port] = primary.address.split(':');
    const source = `host=${host} port=${port} user=postgres application_name=${standbyName}`;
    this.command('pg_basebackup', ['-D', this.dataDir, '-d', source, '-R', '-X', 'stream', '-c', 'fast']);
  }

  /** Starts it as the primary; while `isFollowed`, nothing is committed before its standby has it. */
  async lead(isFollowed: boolean): Promise<void> {
    await this.start([`synchronous_standby_names=${isFollowed ? standbyName : ''}`]);
    if (isFollowed) await this.untilFollowed();
  }

  /** Waits until a standby has all that is committed. */
  async untilFollowed(): Promise<void> {
    const sql = `select 1 from pg_stat_replication where application_name = '${standbyName}' and sync_state = 'sync'`;
    await this.until('it is followed', sql, (rows) => rows.length === 1);
  }

  /** The processes that the system lists: the first, and what it has started. */
  get pids(): readonly number[] {
    const pid = this.isRunning ? (this.running?.pid ?? 0) : 0;
    return pid === 0 ? [] : [pid, ...childrenOf(pid)];
  }

  /** Kills every process of it. */
  async kill(): Promise<void> {
    const all = this.pids;
    const ended = this.running?.end('SIGKILL');
    killEach(all.slice(1));
    await ended;
  }

  /** From a standby it becomes the server that writes. */
  async promote(): Promise<void> {
    this.command('pg_ctl', ['-D', this.dataDir, '-w', 'promote']);
    await this.until('it writes', 'show transaction_read_only', ([row]) => row?.['transaction_read_only'] === 'off');
  }
}

interface PairOptions {
  /** Nothing is answered before the standby has it too. */
  readonly isSynchronous?: boolean;
  /** Options of the server that writes. */
  readonly primary?: PostgresOptions;
}

/** A server and its standby. */
export class PostgresPair {
  readonly primary: PairedServer;
  readonly standby: PairedServer;
  readonly #isSynchronous: boolean;

  private constructor(servers: readonly [PairedServer, PairedServer], isSynchronous: boolean) {
    [this.primary, this.standby] = servers;
    this.#isSynchronous = isSynchronous;
  }

  static async begin({ isSynchronous = true, primary = {} }: PairOptions = {}): Promise<PostgresPair> {
    const leading = new PairedServer(await freePort(), { isDurable: true, ...primary });
    const following = new PairedServer(await freePort(), { isDurable: true });
    const pair = new PostgresPair([leading, following], isSynchronous);
    leading.make();
    await leading.start();
    following.follow(leading);
    await following.start();
    await leading.stop();
    await pair.restart();
    await leading.run('create database latchkey');
    return pair;
  }

  /** Starts the server that writes; waits for its standby. */
  async restart(): Promise<void> {
    await this.primary.lead(this.#isSynchronous);
  }

  /** The address of its store by way of some `host:port`s. */
  url(...addresses: readonly string[]): string {
    return `postgres://postgres@${addresses.join(',')}/latchkey?target_session_attrs=read-write`;
  }

  async close(): Promise<void> {
    await this.standby.close();
    await this.primary.close();
  }
}
