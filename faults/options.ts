import { parseArgs } from 'node:util';
import { chosenIds, positiveWhole } from '../harness/command-line.ts';
import { type StoreName, stores } from './stores.ts';
import { type SuiteName, suites } from './suites.ts';

/** What `--help` prints. */
export const help = `Breaks Latchkey on purpose and tells whether anything was lost.

Usage: npm run faults -- <suite> [options]

  events    kills, power cuts, and brokers with troubles (R1, R2, D5)
  disk      a disk that is full, fails, or may not be written; no handles for files (R4, D4)
  damage    a store that is damaged, half migrated or of a newer release: no start, and one clear line (D6)
  clock     the clock goes back an hour, forward a day, stands still (D7)
  load      three times what can be answered; little memory; ten seconds of standing still; SIGTERM (R9, R7, D8)
  failover  PostgreSQL restarted, cut off, silent, and failed over to its standby under load; its disk full or failing, and
            power cuts (R3, D3, D4, D5)
  upgrade   the store of every earlier schema opens, migrated, with nothing lost (R10)

  --only R1,D5      only the rows with these ids; default: all of the suite
  --kills N         events: how often the service is killed under load, half of it on NATS and half on Redis, default 200;
                    a tenth as often while it founds the organization, and while it migrates an old store
  --store NAME      events, clock, load: sqlite, or postgres; of events that is R1 alone; default sqlite
  --outage N        events: for how many seconds the broker is down, default 60
  --changes N       events: how many changes are made meanwhile, default 1000
  --cuts N          events: how many power cuts, default 100
  --seconds N       load: how long each load lasts, default 8
  --short           a little of everything, as npm test runs it; writes no results
  --mutants         runs suites on copies of the service that do it wrongly; fails when one passes unnoticed
  --json            the results as JSON on the standard output, progress on the standard error
  --help            this text

events  R1: kill -9 under mixed load, at any moment and at those between commit and publish, publish and mark, then
        restart. R2: the broker is down during changes; stands still; is full; comes back empty, and is sent everything
        again. D5: the file operations of the service are recorded, and its data directory is made again as a power cut
        would leave it at many points: what was not synced is dropped, kept, or kept in part. The service must start on it
        with all that was acknowledged, and nothing by halves. Every change has its one event in the log and at the broker,
        by id, in order, and no event is without its change.
disk    R4: on a small file system that fills up: writes are answered 503 and change nothing, reads and checks of tokens go
        on, /health/ready tells, and all is well once there is space. D4: the same while calls of the system fail, each for
        itself and every few times.
failover  R3: two nodes on a PostgreSQL with a synchronous standby, one of them by way of a proxy, under load: restarts, cut
        connections, ten seconds of silence, a standby that is away, a primary that is killed and a standby that takes its
        place. D3: answers of commits are cut off. D4: the disk of PostgreSQL's files, or of its log, is full, and all its syncs
        fail: /health/ready tells. D5: its file system loses power, and with it what was written and not synced. Every answer
        is good, or 503 and soon; nothing acknowledged is lost, what was not is there whole or not at all, no revoked token is
        let in, and both nodes say the same.

Needs nats-server and redis-server for events, PostgreSQL for failover and for --store postgres, strace for D4 and D5, xfs_io
for D5 of failover: as root, missing ones are installed from Debian. Drills of disks mount a small file system, and so need
root; D5 of failover needs a loop device, too. Writes faults/results.json. The exit code is 1 when a budget does not hold.
`;

const unknownSuite = `say which suite: npm run faults -- ${Object.keys(suites).join(' | ')} (--help tells more)`;
const isSuite = (name: string): name is SuiteName => Object.hasOwn(suites, name);
const isStore = (name: string): name is StoreName => Object.hasOwn(stores, name);

const values = {
  only: { type: 'string' },
  kills: { type: 'string', default: '200' },
  store: { type: 'string', default: 'sqlite' },
  outage: { type: 'string', default: '60' },
  changes: { type: 'string', default: '1000' },
  cuts: { type: 'string', default: '100' },
  seconds: { type: 'string', default: '8' },
  short: { type: 'boolean', default: false },
  mutants: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

/** The options of the command line. Throws with one plain sentence when they make no sense. */
export function readOptions(args: string[]) {
  const { values: given, positionals } = parseArgs({ args, allowPositionals: true, options: values });
  const [suite = 'events'] = positionals;
  if (!given.help && positionals.length !== 1) throw new Error(unknownSuite);
  if (!isSuite(suite)) throw new Error(unknownSuite);
  if (!isStore(given.store)) throw new Error('--store must be sqlite or postgres');
  if (given.store !== 'sqlite' && !suites[suite].onAnyStore) throw new Error(`the suite ${suite} takes no --store`);
  if (given.short) Object.assign(given, { kills: '4', outage: '1', changes: '40', cuts: '3', seconds: '2' });
  return {
    ...given,
    suite,
    store: given.store,
    only: given.help ? [] : chosenIds(given.only, suites[suite].ids),
    kills: positiveWhole('kills', given.kills),
    outageSeconds: positiveWhole('outage', given.outage),
    changes: positiveWhole('changes', given.changes),
    cuts: positiveWhole('cuts', given.cuts),
    seconds: positiveWhole('seconds', given.seconds),
  };
}
