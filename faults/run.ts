// Fault injection: break the service on purpose, print a table and write faults/results.json. See --help.
import { runProgram, type Tell } from '../harness/command-line.ts';
import { ensureBuilt, ensureDebianPackages } from '../scripts/setup.mjs';
import { copyOfBuild } from './builds.ts';
import { mutants } from './mutants.ts';
import { help, readOptions } from './options.ts';
import { brokenRow, type Row, resultsOf, rowOf, table, writeResults } from './report.ts';
import type { Planned } from './rows.ts';
import { suites } from './suites.ts';

function planOfMutants(only: readonly string[], tell: Tell): readonly Planned[] {
  return mutants
    .filter(({ id }) => only.includes(id))
    .map(({ id, what, edits, run }) => ({
      row: { id, what: `a service ${what}`, kind: 'mutant' },
      run: async () => {
        const {
          lost = [],
          invented = [],
          disordered = [],
          faults = [],
        } = await run({ entry: copyOfBuild(edits), tell });
        const seen = [...lost, ...invented, ...disordered, ...faults];
        return { faults: seen, done: '', note: seen[0] ?? 'nothing was seen' };
      },
    }));
}

async function attempt({ row, run }: Planned, tell: Tell): Promise<Row> {
  tell(`${row.id}: ${row.what}${row.broker === undefined ? '' : `, ${row.broker}`}`);
  try {
    return rowOf(row, await run());
  } catch (error) {
    tell(`${row.id} broke off: ${error instanceof Error ? error.stack : String(error)}`);
    return brokenRow(row, error);
  }
}

await runProgram('faults', async (isStopped) => {
  const options = readOptions(process.argv.slice(2));
  if (options.help) {
    console.log(help);
    return;
  }
  const tell: Tell = (line) => {
    if (!isStopped()) (options.json ? console.error : console.log)(line);
  };
  const { packages, plan } = suites[options.suite];
  await ensureDebianPackages(packages(options.only));
  await ensureBuilt();
  const rows: Row[] = [];
  const planned = options.mutants ? planOfMutants(options.only, tell) : plan(options, { entry: copyOfBuild(), tell });
  for (const one of planned) {
    if (isStopped()) return;
    rows.push(await attempt(one, tell));
  }
  const results = resultsOf(options, rows);
  if (!options.short) writeResults(results);
  console.log(options.json ? JSON.stringify(results, null, 2) : `\n${table(rows)}`);
  if (!results.consume) process.exitCode = 1;
});
