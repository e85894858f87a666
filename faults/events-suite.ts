import { type BrokerClass, Nats, Redis } from './brokers.ts';
import { killFounding } from './founding.ts';
import { killUnderLoad } from './kills.ts';
import { killMigration } from './migrations.ts';
import { outage, outages } from './outages.ts';
import { cutPower } from './power-cuts.ts';
import type { Given, Options, Outcome, Planned } from './rows.ts';

const kinds: readonly BrokerClass[] = [Nats, Redis];
const tenth = (kills: number) => Math.max(1, Math.ceil(kills / 10));

const killed = (outcome: Awaited<ReturnType<typeof killUnderLoad>>): Outcome => ({
  ...outcome,
  done: `${outcome.kills} kills, ${outcome.changes} changes`,
  note: `${outcome.unpublished} kills left events that were not published, ${outcome.unmarked} some that were published and not marked`,
});

/** What `events` runs, in order: what the table says of it, and what does it. */
export function planOfEvents(options: Options, { entry, tell }: Given): readonly Planned[] {
  const { only, kills, cuts, short, store, outageSeconds, changes } = options;
  const ofKind = (Kind: BrokerClass) => ({ Kind, entry, tell });
  const perBroker = Math.ceil(kills / kinds.length);
  const row = ([id, what]: readonly [string, string], run: () => Promise<Outcome>, Kind?: BrokerClass): Planned => ({
    row: { id, what, kind: 'proof', ...(Kind ? { broker: Kind.title } : {}) },
    run,
  });
  const isEmbedded = store === 'sqlite';
  const rows: Readonly<Record<string, () => readonly Planned[]>> = {
    R1: () => [
      ...kinds.map((Kind) =>
        row(
          ['R1', isEmbedded ? 'kill -9 under load' : 'kill -9 under load, on PostgreSQL'],
          async () => killed(await killUnderLoad({ ...ofKind(Kind), kills: perBroker, store })),
          Kind,
        ),
      ),
      row(['R1', 'kill -9 while founding'], async () => {
        const outcome = await killFounding({ kills: tenth(kills), entry, tell });
        return { ...outcome, done: `${outcome.kills} kills, ${outcome.founded} founded` };
      }),
      row(['R1', 'kill -9 in a migration'], async () => {
        const outcome = await killMigration({ kills: tenth(kills), entry, tell });
        return { ...outcome, done: `${outcome.kills} kills, ${outcome.halfway} half way` };
      }),
    ],
    R2: () =>
      kinds.flatMap((Kind) =>
        outages
          .filter(({ trouble }) => !short || trouble === (Kind === Nats ? 'down' : 'empty'))
          .map(({ trouble, what }) => {
            const run = () => outage(trouble, { ...ofKind(Kind), outageSeconds, changes });
            return row(['R2', what], run, Kind);
          }),
      ),
    D5: () => [
      row(['D5', 'power cuts'], async () => {
        const outcome = await cutPower({ cuts, entry, tell });
        return { ...outcome, done: `${outcome.cuts} cuts in ${outcome.operations} operations` };
      }),
    ],
  };
  if (isEmbedded) return only.flatMap((id) => rows[id]?.() ?? []);
  // The rest is about the embedded store, or about no store at all.
  return only.includes('R1') ? (rows['R1']?.().slice(0, kinds.length) ?? []) : [];
}
