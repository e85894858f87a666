import { Nats, Redis } from './brokers.ts';
import { killFounding, killUnderLoad } from './kills.ts';
import { killMigration } from './migrations.ts';
import { outages } from './outages.ts';
import { cutPower } from './power-cuts.ts';

const kinds = [Nats, Redis];
const names = { Nats: 'NATS', Redis: 'Redis' };
const tenth = (kills) => Math.max(1, Math.ceil(kills / 10));

const killed = (outcome) => ({
  ...outcome,
  done: `${outcome.kills} kills, ${outcome.changes} changes`,
  note: `${outcome.unpublished} kills left events that were not published, ${outcome.unmarked} some that were published and not marked`,
});

/** What `events` runs, in order: what the table says of it, and what does it. */
export function planOfEvents({ only, kills, cuts, short, store, ...options }, { entry, tell }) {
  const ofKind = (Kind) => ({ Kind, entry, tell });
  const perBroker = Math.ceil(kills / kinds.length);
  const row = (id, what, run, Kind) => ({
    row: { id, what, kind: 'proof', ...(Kind ? { broker: names[Kind.name] } : {}) },
    run,
  });
  const isEmbedded = store === 'sqlite';
  const rows = {
    R1: () => [
      ...kinds.map((Kind) =>
        row(
          'R1',
          isEmbedded ? 'kill -9 under load' : 'kill -9 under load, on PostgreSQL',
          async () => killed(await killUnderLoad({ ...ofKind(Kind), kills: perBroker, store })),
          Kind,
        ),
      ),
      row('R1', 'kill -9 while founding', async () => {
        const outcome = await killFounding({ kills: tenth(kills), entry, tell });
        return { ...outcome, done: `${outcome.kills} kills, ${outcome.founded} founded` };
      }),
      row('R1', 'kill -9 in a migration', async () => {
        const outcome = await killMigration({ kills: tenth(kills), entry, tell });
        return { ...outcome, done: `${outcome.kills} kills, ${outcome.halfway} half way` };
      }),
    ],
    R2: () =>
      kinds.flatMap((Kind) =>
        outages
          .filter(({ trouble }) => !short || trouble === (Kind === Nats ? 'down' : 'empty'))
          .map(({ what, run }) => row('R2', what, () => run({ ...ofKind(Kind), ...options }), Kind)),
      ),
    D5: () => [
      row('D5', 'power cuts', async () => {
        const outcome = await cutPower({ cuts, entry, tell });
        return { ...outcome, done: `${outcome.cuts} cuts in ${outcome.operations} operations` };
      }),
    ],
  };
  if (isEmbedded) return only.flatMap((id) => rows[id]());
  // The rest is about the embedded store, or about no store at all.
  return only.includes('R1') ? rows.R1().slice(0, kinds.length) : [];
}
