import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../harness/command-line.ts';
import { temporaryFolder } from '../harness/processes.ts';
import { until } from '../harness/waiting.ts';
import { DiskWithPower, SmallDisk } from './disks.ts';
import type { Load } from './failover-load.ts';
import type { PostgresPair } from './postgres.ts';
import type { DatabaseProxy } from './proxy.ts';
import type { Service } from './service.ts';
import { inject } from './tracer.ts';

const diskMegabytes = 96;
const logMegabytes = 24;
const poweredMegabytes = 256;

interface Given {
  readonly pair: PostgresPair;
  readonly proxy: DatabaseProxy;
  readonly load: Load;
  readonly nodes: readonly Service[];
  readonly seconds: number;
}

/** Where a server has something. */
interface Place {
  readonly folder: string;
  readonly unmount?: () => void;
}

/** What is done to the store under load. */
export interface Trouble {
  /** R3 unless said otherwise. */
  readonly id?: string;
  readonly what: string;
  /** A short run leaves it out. */
  readonly isLong?: boolean;
  /** How often it is done. */
  readonly times: number;
  /** Whether the server waits for its standby, as it does unless said otherwise. */
  readonly isSynchronous?: boolean;
  /** No read may be refused meanwhile. */
  readonly doReadsGoOn?: boolean;
  /** Makes what the files of the server, or its log, are on. */
  readonly disks?: () => { readonly disk?: Place; readonly logDisk?: Place };
  /** Resolves once the store is as good as before, or one that took its place is. */
  run(given: Given): Promise<void>;
}

/** Waits until every node tells of what is wrong, and blames one that takes it back while it still is. */
async function expectUnready({ load, nodes, seconds }: Given): Promise<void> {
  for (const node of nodes) {
    const isLogged = async () => (await node.health('ready')) === 503;
    await until(`node ${node.name} said that it is not ready`, isLogged).catch((error) => load.blame(messageOf(error)));
  }
  const untilMs = performance.now() + seconds * 2_000;
  while (performance.now() < untilMs) {
    for (const node of nodes) {
      const [ready, live] = [await node.health('ready'), await node.health('live')];
      if (ready !== 503) load.blame(`node ${node.name} says that it is ready`);
      if (live !== 200) load.blame(`node ${node.name} says that it does not live`);
    }
    await sleep(100);
  }
}

async function promote({ pair, proxy }: Given): Promise<void> {
  await pair.standby.promote();
  proxy.turnTo(pair.standby.port);
}

const ofServers: readonly Trouble[] = [
  {
    what: 'PostgreSQL is restarted',
    isLong: true,
    times: 2,
    run: async ({ pair }) => {
      await pair.primary.stop('fast');
      await pair.restart();
    },
  },
  {
    what: 'PostgreSQL is ended on the spot, and started',
    isLong: true,
    times: 2,
    run: async ({ pair }) => {
      await pair.primary.stop('immediate');
      await pair.restart();
    },
  },
  {
    what: 'the server ends all connections',
    isLong: true,
    times: 8,
    run: async ({ pair }) => {
      const text = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'latchkey'";
      await pair.primary.run(text);
    },
  },
  {
    what: 'the network cuts all connections',
    isLong: true,
    times: 8,
    run: async ({ proxy }) => proxy.cut(),
  },
  {
    id: 'D3',
    what: 'answers of commits are cut off',
    times: 2,
    run: async ({ proxy, seconds }) => {
      proxy.cutCommitAnswers(true);
      await sleep(seconds * 1_000);
      proxy.cutCommitAnswers(false);
    },
  },
  {
    what: 'nothing is answered, and nothing closed',
    isLong: true,
    times: 1,
    run: async ({ proxy, seconds }) => {
      proxy.hush();
      await sleep(seconds * 5_000);
      proxy.speak();
    },
  },
  {
    what: 'the standby is away',
    isLong: true,
    times: 1,
    run: async ({ pair, seconds }) => {
      await pair.standby.stop('immediate');
      await sleep(seconds * 4_000);
      await pair.standby.start();
      await pair.primary.untilFollowed();
    },
  },
  {
    what: 'the primary is killed, the standby promoted',
    times: 1,
    run: async (given) => {
      await given.pair.primary.kill();
      await promote(given);
    },
  },
  {
    what: 'the same, while the standby was behind',
    isLong: true,
    times: 1,
    run: async (given) => {
      const { pair, seconds } = given;
      // Only what is acknowledged without the standby can be lost now.
      await pair.standby.stop('immediate');
      await sleep(seconds * 1_000);
      await pair.primary.kill();
      await pair.standby.start();
      await promote(given);
    },
  },
];

/** A trouble of a disk, which is made anew for each run. */
function onDisk<D extends Place>(make: () => D, trouble: Omit<Trouble, 'run' | 'disks'> & OfDisk<D>): Trouble {
  const { isOfLog = false, isLogElsewhere = false, run, ...more } = trouble;
  let disk: D | null = null;
  return {
    ...more,
    isLong: true,
    isSynchronous: false,
    disks: () => {
      disk = make();
      if (isOfLog) return { logDisk: disk };
      return isLogElsewhere ? { disk, logDisk: { folder: temporaryFolder() } } : { disk };
    },
    run: async (given) => {
      if (disk !== null) await run(given, disk);
    },
  };
}

interface OfDisk<D> {
  /** It holds the log of the server, not its files. */
  readonly isOfLog?: boolean;
  /** It holds the files of the server, and not its log. */
  readonly isLogElsewhere?: boolean;
  run(given: Given, disk: D): Promise<void>;
}

const ofDisks: readonly Trouble[] = [
  onDisk(() => SmallDisk.make(diskMegabytes), {
    id: 'D4',
    what: "PostgreSQL's disk is full",
    times: 2,
    doReadsGoOn: true,
    isLogElsewhere: true,
    run: async (given, disk) => {
      const empty = disk.fill();
      await expectUnready(given);
      empty();
    },
  }),
  onDisk(() => SmallDisk.make(logMegabytes), {
    id: 'D4',
    what: 'the disk of its log is full',
    times: 2,
    isOfLog: true,
    run: async (given, disk) => {
      const { primary } = given.pair;
      const empty = disk.fill();
      // Each of these takes one more file, until there is no room for one.
      const useUp = () => primary.run('select pg_switch_wal() from (select txid_current()) as used').catch(() => {});
      await until('it has ended', async () => {
        await useUp();
        return !primary.isRunning;
      });
      await expectUnready(given);
      empty();
      await given.pair.restart();
    },
  }),
  {
    id: 'D4',
    what: 'its syncs fail',
    isLong: true,
    times: 3,
    isSynchronous: false,
    run: async (given) => {
      const { primary } = given.pair;
      const mend = await inject(primary.pids, { calls: 'fsync,fdatasync', error: 'EIO', every: 1 });
      await expectUnready(given);
      await mend();
      await primary.stop('immediate');
      await given.pair.restart();
    },
  },
  onDisk(() => DiskWithPower.make(poweredMegabytes), {
    id: 'D5',
    what: 'power is cut from it',
    times: 20,
    run: async ({ pair }, disk) => {
      await sleep(randomInt(1_000));
      disk.cutPower();
      await pair.primary.kill();
      disk.restorePower();
      await pair.restart();
    },
  }),
];

/** All of them, in the order of the table. */
export const troubles: readonly Trouble[] = [...ofServers, ...ofDisks];
