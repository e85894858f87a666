import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { DiskWithPower, SmallDisk } from './disks.ts';
import { until } from './kills.ts';
import { temporaryFolder } from './processes.ts';
import { inject } from './tracer.ts';

const diskMegabytes = 96;
const logMegabytes = 24;
const poweredMegabytes = 256;

/** Waits until every node tells of what is wrong, and blames one that takes it back while it still is. */
async function expectUnready({ load, nodes, seconds }) {
  for (const node of nodes) {
    const isTold = async () => (await node.health('ready')) === 503;
    await until(`node ${node.name} said that it is not ready`, isTold).catch(({ message }) => load.blame(message));
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

async function promote(pair, proxy) {
  await pair.standby.promote();
  proxy.turnTo(pair.standby.port);
}

/**
 * What is done to the store under load. `run` answers once the store is as good as before, or one that took its place is;
 * `times` is how often it is done, and `isLong` that a short run leaves it out. Of its server, `disks` makes what its files are
 * on, and `isSynchronous: false` says that it waits for no standby. `doReadsGoOn`: no read may be refused meanwhile.
 */
export const troubles = [
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
    run: async ({ pair, proxy }) => {
      await pair.primary.kill();
      await promote(pair, proxy);
    },
  },
  {
    what: 'the same, while the standby was behind',
    isLong: true,
    times: 1,
    run: async ({ pair, proxy, seconds }) => {
      // Only what is acknowledged without the standby can be lost now.
      await pair.standby.stop('immediate');
      await sleep(seconds * 1_000);
      await pair.primary.kill();
      await pair.standby.start();
      await promote(pair, proxy);
    },
  },
  {
    id: 'D4',
    what: "PostgreSQL's disk is full",
    isLong: true,
    times: 2,
    isSynchronous: false,
    doReadsGoOn: true,
    disks: () => ({ disk: SmallDisk.make(diskMegabytes), logDisk: { folder: temporaryFolder() } }),
    run: async (given) => {
      const empty = given.pair.primary.disk.fill();
      await expectUnready(given);
      empty();
    },
  },
  {
    id: 'D4',
    what: 'the disk of its log is full',
    isLong: true,
    times: 2,
    isSynchronous: false,
    disks: () => ({ logDisk: SmallDisk.make(logMegabytes) }),
    run: async (given) => {
      const { primary } = given.pair;
      const empty = primary.logDisk.fill();
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
  },
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
  {
    id: 'D5',
    what: 'power is cut from it',
    isLong: true,
    times: 20,
    isSynchronous: false,
    disks: () => ({ disk: DiskWithPower.make(poweredMegabytes) }),
    run: async ({ pair }) => {
      await sleep(randomInt(1_000));
      pair.primary.disk.cutPower();
      await pair.primary.kill();
      pair.primary.disk.restorePower();
      await pair.restart();
    },
  },
];

