// The benchmark: measures the rows of budgets.ts, prints a table and writes bench/results.json. See --help.
import { fileURLToPath } from 'node:url';
import { messageOf, runProgram, type Tell } from '../harness/command-line.ts';
import { endEverything } from '../harness/processes.ts';
import { ensureBuilt, ensureDebianPackages } from '../scripts/setup.mjs';
import { listStatementsOutcome, processOutcome, racesOutcome, tokenListOutcome, wholeListOutcome } from './figures.ts';
import { installPeers } from './install.ts';
import { requireEveryList } from './list-routes.ts';
import { measureLoad } from './load.ts';
import { measureCalls } from './mcp-calls.ts';
import { help, readOptions } from './options.ts';
import {
  callsOutcome,
  cpuOutcome,
  inviteOutcome,
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
import { runNode } from './pinned.ts';
import { table, writeResults } from './report.ts';
import type { Measuring, Options, Outcome, Row } from './rows.ts';
import { measureTiming } from './t9-timing.ts';

const verification = fileURLToPath(new URL('./p5-verification.ts', import.meta.url));

/** What is measured for some rows together. */
interface Measurement {
  isOf(row: Row): boolean;
  run(rows: readonly Row[], options: Options): Promise<readonly Outcome[]>;
}

function measurement<M>(
  isOf: (row: Row) => boolean,
  measure: (rows: readonly Row[], options: Options) => Promise<M>,
  outcome: (row: Row, measured: M) => Outcome,
): Measurement {
  const run = async (rows: readonly Row[], options: Options) => {
    const measured = await measure(rows, options);
    return rows.map((row) => outcome(row, measured));
  };
  return { isOf, run };
}

const ofKind = (kind: string) => (row: Row) => row.kind === kind;
const ofId = (id: string) => (row: Row) => row.id === id;
const isListStatements = (row: Row) => row.kind === 'list' && row.part === 'statements';

async function measureCpu({ tell }: Measuring): Promise<{ readonly microseconds: number }> {
  tell('P5: one verification, in process');
  return JSON.parse(await runNode([verification], { core: 'server' }));
}

async function measureRounds(rows: readonly Row[], options: Options) {
  if (rows.some((row) => [row.subject, row.peer].includes('better-auth'))) installPeers(options.tell);
  return measureLoad(rows, options);
}

async function compareStatements(_: readonly Row[], options: Options) {
  requireEveryList();
  return countStatements(options);
}

async function measureRelayed(_: readonly Row[], options: Options) {
  await ensureDebianPackages([{ command: 'nats-server', package: 'nats-server' }]);
  return measureRelay(options);
}

const measurements: readonly Measurement[] = [
  measurement(ofKind('load'), measureRounds, (row, roundsOf) => loadOutcome(row, roundsOf(row))),
  measurement(ofKind('growth'), (_, options) => measureGrowth(options), loadOutcome),
  measurement(ofKind('cpu'), (_, options) => measureCpu(options), cpuOutcome),
  measurement(ofId('P6'), ([row], options) => measureRaces(row?.tries ?? 0, options), racesOutcome),
  measurement(ofId('P10'), (_, options) => measureTokenList(options), tokenListOutcome),
  measurement(
    ofId('P13'),
    (rows, options) =>
      measureProcess(
        rows.map(({ part }) => part),
        options,
      ),
    processOutcome,
  ),
  measurement(ofId('P7'), (_, options) => measureSignIns(options), turnsOutcome),
  measurement(ofId('P8'), (_, options) => measureUploads(options), turnsOutcome),
  measurement(
    (row) => row.kind === 'list' && !isListStatements(row),
    (_, options) => measureUserList(options),
    wholeListOutcome,
  ),
  measurement(isListStatements, (_, options) => countStatements(options), listStatementsOutcome),
  measurement(ofKind('invite'), (_, options) => measureInvite(options), inviteOutcome),
  measurement(ofKind('relay'), measureRelayed, relayOutcome),
  measurement(ofKind('statements'), compareStatements, statementsOutcome),
  measurement(ofKind('calls'), measureCalls, callsOutcome),
  measurement(ofKind('timing'), measureTiming, timingOutcome),
];

/** Measures these rows; what breaks is said of each of them, and the others are measured all the same. */
async function attempt({ run }: Measurement, rows: readonly Row[], options: Options): Promise<readonly Outcome[]> {
  try {
    return await run(rows, options);
  } catch (error) {
    options.tell(`${rows.map(({ id }) => id).join(', ')} broke: ${messageOf(error)}`);
    return rows.map((row) => unmeasured(row, messageOf(error)));
  } finally {
    await endEverything();
  }
}

await runProgram('bench', async (isStopped) => {
  const options = readOptions(process.argv.slice(2), process.env);
  if (options.help) {
    console.log(help);
    return;
  }
  const tell: Tell = (line) => {
    if (!isStopped()) (options.json ? console.error : console.log)(line);
  };
  await ensureBuilt();
  const outcomes: Outcome[] = [];
  for (const one of measurements) {
    const rows = options.rows.filter(one.isOf);
    if (rows.length > 0 && !isStopped()) outcomes.push(...(await attempt(one, rows, { ...options, tell })));
  }
  if (isStopped()) return;
  outcomes.sort((one, other) => options.rows.indexOf(one.row) - options.rows.indexOf(other.row));
  const results = writeResults(options.seconds, outcomes);
  console.log(options.json ? JSON.stringify(results, null, 2) : `\n${table(outcomes)}`);
  if (outcomes.some((outcome) => outcome.unmeasured !== undefined)) process.exitCode = 1;
});
