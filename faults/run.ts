// Fault injection: break the service on purpose, print a table and write faults/results.json. See --help.
import { ensureBuilt, ensureDebianPackages, ensureInstalled, requireNode } from '../scripts/setup.mjs';
import { copyOfBuild } from './builds.ts';
import { suites } from './suites.ts';
import { help, readOptions } from './options.ts';
import { endEverything } from './processes.ts';
import { brokenRow, resultsOf, rowOf, table, writeResults } from './report.ts';
import { mutants } from './mutants.ts';

function planOfMutants({ only }, tell) {
  return mutants
    .filter(({ id }) => only.includes(id))
    .map(({ id, what, edits, run }) => ({
      row: { id, what: `a service ${what}`, kind: 'mutant' },
      run: async () => {
        const { lost = [], invented = [], disordered = [], faults = [] } = await run({ entry: copyOfBuild(edits), tell });
        const seen = [...lost, ...invented, ...disordered, ...faults];
        return { found: seen.length, done: '', note: seen[0] ?? 'nothing was seen' };
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
  const { packages, plan } = suites[options.suite];
  await ensureDebianPackages(packages(options.only));
  await ensureBuilt();
  const rows = [];
  const planned = options.mutants ? planOfMutants(options, tell) : plan(options, { entry: copyOfBuild(), tell });
  for (const one of planned) {
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
    console.error(`faults: ${error.message}`);
    process.exitCode = 1;
  }
} finally {
  await endEverything();
}
