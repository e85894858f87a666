import { debianPackages } from './brokers.ts';
import { clockRows } from './clock.ts';
import { damageRows } from './damage.ts';
import { diskRows } from './disk-troubles.ts';
import { planOfEvents } from './events-suite.ts';
import { cutter } from './disks.ts';
import { failoverRows } from './failover.ts';
import { loadRows } from './load.ts';
import { postgresPackage } from './postgres.ts';
import { stores } from './stores.ts';
import { tracer } from './tracer.ts';
import { upgradeRows } from './upgrades.ts';

/** Rows as a suite declares them, those of the wanted ids, ready to be run. */
const planOf =
  (rows) =>
  ({ only, short, seconds, store: name }, { entry, tell }) =>
    rows
      .filter((row) => only.includes(row.id) && !(short && row.isLong))
      .map(({ run, isLong: _, ...row }) => ({
        row: { ...row, kind: 'check', ...(name === 'sqlite' ? {} : { what: `${row.what}, ${name}` }) },
        run: async () => {
          const store = await stores[name]();
          try {
            return await run({ entry, tell, short, seconds, store });
          } finally {
            await store.close();
          }
        },
      }));

/**
 * Every suite by its name: the `ids` of its rows, the Debian `packages` that some of them need, and `plan`, which answers
 * what is to be run, in order: what the table says of it, and what does it. Those with `onAnyStore` take `--store`.
 */
export const suites = {
  events: {
    ids: ['R1', 'R2', 'D5'],
    onAnyStore: true,
    packages: (only) => [...debianPackages, ...(only.includes('D5') ? [tracer] : [])],
    plan: planOfEvents,
  },
  disk: { ids: ['R4', 'D4'], packages: (only) => (only.includes('D4') ? [tracer] : []), plan: planOf(diskRows) },
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
    packages: (only) => [
      postgresPackage,
      ...(only.includes('D4') ? [tracer] : []),
      ...(only.includes('D5') ? [cutter] : []),
    ],
    plan: planOf(failoverRows),
  },
  upgrade: { ids: ['R10'], packages: () => [], plan: planOf(upgradeRows) },
};
