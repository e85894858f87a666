// The benchmark: measures the rows of budgets.mjs, prints a table and writes bench/results.json. See --help.
import { fileURLToPath } from 'node:url';
import { installPeers } from './install.mjs';
import { measureLoad } from './load.mjs';
import { help, readOptions } from './options.mjs';
import { endEverything, runNode } from './processes.mjs';
import { cpuOutcome, loadOutcome, table, writeResults } from './report.mjs';

const verification = fileURLToPath(new URL('./p5-verification.mjs', import.meta.url));

async function measureCpu(tell) {
  tell('P5: one verification, in process');
  return JSON.parse(await runNode([verification], { core: 'server', env: {} }));
}

async function measure(options, tell) {
  const loadRows = options.rows.filter((row) => row.kind === 'load');
  if (loadRows.some((row) => [row.subject, row.peer].includes('better-auth'))) installPeers(tell);
  const rounds = loadRows.length > 0 ? await measureLoad(loadRows, { ...options, tell }) : [];
  await endEverything();
  const outcomes = [];
  for (const row of options.rows) {
    outcomes.push(row.kind === 'cpu' ? cpuOutcome(row, await measureCpu(tell)) : loadOutcome(row, rounds));
  }
  return { options, outcomes, rounds };
}

async function main(options) {
  if (options.help) {
    console.log(help);
    return;
  }
  const tell = options.json ? console.error : console.log;
  const results = writeResults(await measure(options, tell));
  if (options.json) console.log(JSON.stringify(results, null, 2));
  else console.log(`\n${table(results.rows)}`);
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
  await main(readOptions(process.argv.slice(2), process.env));
} catch (error) {
  // What breaks because everything was just ended is no news.
  if (!stopped) {
    console.error(`bench: ${error.message}`);
    process.exitCode = 1;
  }
} finally {
  await endEverything();
}
