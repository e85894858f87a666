// The drills: break the service on purpose, print a table and write drill/results.json. See --help.
import { ensureBuilt, ensureDebianPackages, ensureInstalled, requireNode } from '../scripts/setup.mjs';
import { debianPackages, Nats, Redis } from './brokers.mjs';
import { copyOfBuild } from './builds.mjs';
import { killFounding, killUnderLoad } from './kills.mjs';
import { killMigration } from './migrations.mjs';
import { help, readOptions } from './options.mjs';
import { outages } from './outages.mjs';
import { cutPower, tracer } from './power-cuts.mjs';
import { endEverything } from './processes.mjs';
import { brokenRow, resultsOf, rowOf, table, writeResults } from './report.mjs';
import { twins } from './twins.mjs';

const kinds = [Nats, Redis];
const names = { Nats: 'NATS', Redis: 'Redis' };
const tenth = (kills) => Math.max(1, Math.ceil(kills / 10));

const killed = (outcome) => ({
  ...outcome,
  done: `${outcome.kills} kills, ${outcome.changes} changes`,
  note: `${outcome.unpublished} kills left events that were not published, ${outcome.unmarked} some that were published and not marked`,
});

/** Everything that is to be run, in order: what the table says of it, and what does it. */
function plan({ only, kills, cuts, short, ...options }, tell) {
  const entry = copyOfBuild();
  const ofKind = (Kind) => ({ Kind, entry, tell });
  const perBroker = Math.ceil(kills / kinds.length);
  const row = (id, what, run, Kind) => ({
    row: { id, what, kind: 'proof', ...(Kind ? { broker: names[Kind.name] } : {}) },
    run,
  });
  const drills = {
    R1: () => [
      ...kinds.map((Kind) =>
        row(
          'R1',
          'kill -9 under load',
          async () => killed(await killUnderLoad({ ...ofKind(Kind), kills: perBroker })),
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
  return only.flatMap((id) => drills[id]());
}

function planOfTwins({ only }, tell) {
  return twins
    .filter(({ id }) => only.includes(id))
    .map(({ id, what, edits, run }) => ({
      row: { id, what: `a service ${what}`, kind: 'twin' },
      run: async () => {
        const { lost, invented, disordered } = await run({ entry: copyOfBuild(edits), tell });
        const faults = [...lost, ...invented, ...disordered];
        return { found: faults.length, done: '', note: faults[0] ?? 'nothing was seen' };
      },
    }));
}

async function attempt({ row, run }, tell) {
  tell(`${row.id}: ${row.what}${row.broker === undefined ? '' : `, ${row.broker}`}`);
  try {
    return rowOf(row, await run());
  } catch (error) {
    if (!stopped) tell(`${row.id} broke off: ${error.stack}`);
    return brokenRow(row, error);
  }
}

async function main(options) {
  if (options.help) {
    console.log(help);
    return;
  }
  const tell = options.json ? console.error : console.log;
  requireNode();
  await ensureInstalled();
  await ensureDebianPackages([...debianPackages, ...(options.only.includes('D5') ? [tracer] : [])]);
  await ensureBuilt();
  const rows = [];
  for (const one of options.twins ? planOfTwins(options, tell) : plan(options, tell)) {
    if (stopped) return;
    rows.push(await attempt(one, tell));
  }
  const results = resultsOf(options, rows);
  if (!options.short) writeResults(results);
  if (options.json) console.log(JSON.stringify(results, null, 2));
  else console.log(`\n${table(rows)}`);
  if (!results.holds) process.exitCode = 1;
}

let stopped = false;

function stop(exitCode) {
  stopped = true;
  process.exitCode = exitCode;
  endEverything().then(() => process.exit(exitCode));
}

process.once('SIGINT', () => stop(130));
process.once('SIGTERM', () => stop(143));

try {
  await main(readOptions(process.argv.slice(2)));
} catch (error) {
  if (!stopped) {
    console.error(`drill: ${error.message}`);
    process.exitCode = 1;
  }
} finally {
  await endEverything();
}
