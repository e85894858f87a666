// The benchmark: measures the rows of budgets.ts, prints a table and writes bench/results.json. See --help.
import { fileURLToPath } from 'node:url';
import { installPeers } from './install.ts';
import { requireEveryList } from './list-routes.ts';
import { measureLoad } from './load.ts';
import { measureCalls } from './mcp-calls.ts';
import { help, readOptions } from './options.ts';
import {
  callsOutcome,
  cpuOutcome,
  figureOutcome,
  growthOutcome,
  inviteOutcome,
  listOutcome,
  loadOutcome,
  relayOutcome,
  statementsOutcome,
  timingOutcome,
  turnsOutcome,
  unmeasured,
} from './outcomes.ts';
import { measureGrowth } from './p4-growth.ts';
import { measureRaces } from './p6-races.ts';
import { measureSignIns } from './p7-sign-ins.ts';
import { measureUploads } from './p8-uploads.ts';
import { measureUserList } from './p9-user-list.ts';
import { measureTokenList } from './p10-token-list.ts';
import { measureInvite } from './p11-invite.ts';
import { measureRelay } from './p12-relay.ts';
import { measureProcess } from './p13-process.ts';
import { countStatements } from './p14-statements.ts';
import { endPostgres } from './postgres-store.ts';
import { endEverything, runNode } from './pinned.ts';
import { table, writeResults } from './report.ts';
import { measureTiming } from './t9-timing.ts';

const verification = fileURLToPath(new URL('./p5-verification.ts', import.meta.url));

async function measureCpu({ tell }) {
  tell('P5: one verification, in process');
  return JSON.parse(await runNode([verification], { core: 'server', env: {} }));
}

async function measureRounds(rows, options) {
  if (rows.some((row) => [row.subject, row.peer].includes('better-auth'))) installPeers(options.tell);
  return measureLoad(rows, options);
}

async function compareStatements(_, options) {
  requireEveryList();
  return countStatements(options);
}

/** What is measured for some rows together, and the outcome of each of them. */
const measurements = [
  { of: (row) => row.kind === 'load', measure: measureRounds, outcome: loadOutcome },
  { of: (row) => row.kind === 'growth', measure: (_, options) => measureGrowth(options), outcome: growthOutcome },
  { of: (row) => row.kind === 'cpu', measure: (_, options) => measureCpu(options), outcome: cpuOutcome },
  {
    of: (row) => row.id === 'P6',
    measure: ([{ tries }], options) => measureRaces({ tries, ...options }),
    outcome: figureOutcome,
  },
  { of: (row) => row.id === 'P10', measure: (_, options) => measureTokenList(options), outcome: figureOutcome },
  {
    of: (row) => row.id === 'P13',
    measure: (rows, options) => measureProcess({ parts: rows.map(({ part }) => part), ...options }),
    outcome: figureOutcome,
  },
  { of: (row) => row.id === 'P7', measure: (_, options) => measureSignIns(options), outcome: turnsOutcome },
  { of: (row) => row.id === 'P8', measure: (_, options) => measureUploads(options), outcome: turnsOutcome },
  {
    of: (row) => row.kind === 'list' && row.part !== 'statements',
    measure: async (_, options) => ({ whole: await measureUserList(options) }),
    outcome: listOutcome,
  },
  {
    of: (row) => row.kind === 'list' && row.part === 'statements',
    measure: async (_, options) => ({ counted: await countStatements(options) }),
    outcome: listOutcome,
  },
  { of: (row) => row.kind === 'invite', measure: (_, options) => measureInvite(options), outcome: inviteOutcome },
  { of: (row) => row.kind === 'relay', measure: (_, options) => measureRelay(options), outcome: relayOutcome },
  { of: (row) => row.kind === 'statements', measure: compareStatements, outcome: statementsOutcome },
  { of: (row) => row.kind === 'calls', measure: measureCalls, outcome: callsOutcome },
  { of: (row) => row.kind === 'timing', measure: measureTiming, outcome: timingOutcome },
];

/** Measures these rows; what breaks is told with each of them, and the others are measured all the same. */
async function attempt({ measure, outcome }, rows, options) {
  try {
    const measured = await measure(rows, options);
    return { measured, outcomes: rows.map((row) => outcome(row, measured)) };
  } catch (error) {
    // What breaks because everything was just ended is no news.
    if (!stopped) options.tell(`${rows.map(({ id }) => id).join(', ')} broke: ${error.message}`);
    return { measured: [], outcomes: rows.map((row) => unmeasured(row, error)) };
  } finally {
    await endEverything();
    await endPostgres();
  }
}

async function measure(options, tell) {
  const outcomes = [];
  let rounds = [];
  for (const measurement of measurements) {
    const rows = options.rows.filter(measurement.of);
    if (rows.length === 0 || stopped) continue;
    const done = await attempt(measurement, rows, { ...options, tell });
    if (rows[0].kind === 'load') rounds = done.measured;
    outcomes.push(...done.outcomes);
  }
  const place = ({ id, part }) => options.rows.findIndex((row) => row.id === id && row.part === part);
  return { options, outcomes: outcomes.sort((one, other) => place(one) - place(other)), rounds };
}

async function main(options) {
  if (options.help) {
    console.log(help);
    return;
  }
  const tell = options.json ? console.error : console.log;
  const measured = await measure(options, tell);
  if (stopped) return;
  const results = writeResults(measured);
  if (options.json) console.log(JSON.stringify(results, null, 2));
  else console.log(`\n${table(results.rows)}`);
  if (results.rows.some((row) => row.unmeasured !== undefined)) process.exitCode = 1;
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
  if (!stopped) {
    console.error(`bench: ${error.message}`);
    process.exitCode = 1;
  }
} finally {
  await endEverything();
}
