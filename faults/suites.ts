import { debianPackages } from './brokers.ts';
import { clockRows } from './clock.ts';
import { damageRows } from './damage.ts';
import { diskRows } from './disk-troubles.ts';
import { cutter } from './disks.ts';
import { planOfEvents } from './events-suite.ts';
import { failoverRows } from './failover.ts';
import { loadRows } from './load.ts';
import { postgresPackage } from './postgres.ts';
import type { Given, Options, Planned, SuiteRow } from './rows.ts';
import { stores } from './stores.ts';
import { tracer } from './tracer.ts';
import { upgradeRows } from './upgrades.ts';

/** A part of fault injection. */
interface Suite {
  /** Of its rows. */
  readonly ids: readonly string[];
  /** Takes `--store`. */
  readonly onAnyStore?: boolean;
  /** The Debian packages that some of its rows need. */
  packages(only: readonly string[]): readonly DebianPackage[];
  /** What is to be run, in order. */
  plan(options: Options, given: Given): readonly Planned[];
}

interface DebianPackage {
  readonly command: string;
  readonly package: string;
}

/** Rows as a suite declares them, those of the wanted ids, ready to be run. */
const planOf =
  (rows: readonly SuiteRow[]) =>
  ({ only, short, seconds, store: name }: Options, { entry, tell }: Given): readonly Planned[] =>
    rows
      .filter((row) => only.includes(row.id) && !(short && row.isLong))
      .map(({ id, what, expected, run }) => ({
        row: { id, what: name === 'sqlite' ? what : `${what}, ${name}`, expected, kind: 'check' },
        run: async () => {
          const store = await stores[name]();
          try {
            return await run({ entry, tell, short, seconds, store });
          } finally {
            await store.close();
          }
        },
      }));

const ofD4 = (only: readonly string[]) => (only.includes('D4') ? [tracer] : []);

/** What `npm run faults` takes as the first word. */
export type SuiteName = 'events' | 'disk' | 'damage' | 'clock' | 'load' | 'failover' | 'upgrade';

/** Every suite by its name. */
export const suites: Readonly<Record<SuiteName, Suite>> = {
  events: {
    ids: ['R1', 'R2', 'D5'],
    onAnyStore: true,
    packages: (only) => [...debianPackages, ...(only.includes('D5') ? [tracer] : [])],
    plan: planOfEvents,
  },
  disk: { ids: ['R4', 'D4'], packages: ofD4, plan: planOf(diskRows) },
  damage: { ids: ['D6'], packages: () => [], plan: planOf(damageRows) },
  clock: { ids: ['D7'], onAnyStore: true, packages: () => [], plan: planOf(clockRows) },
  load: {
    ids: ['R9', 'D8', 'R7'],
    onAnyStore: true,
    packages: (only) => (only.includes('R7') ? debianPackages : []),
    plan: planOf(loadRows),
  },
  failover: {
    ids: ['R3', 'D3', 'D4', 'D5'],
    packages: (only) => [postgresPackage, ...ofD4(only), ...(only.includes('D5') ? [cutter] : [])],
    plan: planOf(failoverRows),
  },
  upgrade: { ids: ['R10'], packages: () => [], plan: planOf(upgradeRows) },
};
