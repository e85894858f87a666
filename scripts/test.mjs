// npm test: installs what is needed, checks, builds, and runs the tests; stops at the first step that fails. Its last line is
// `N passed, N failed`, with `, N skipped` when there are any: a skipped test fails the whole, because what is not run proves
// nothing. See test-options.mjs for what else it takes.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { report, runChecks } from './checks.mjs';
import { ensureOutsideClients } from './outside-clients.mjs';
import { ensureBuilt, ensureDebianPackages, ensureInstalled, requireNode } from './setup.mjs';
import { inSeconds, runNode, StepError, stackOf } from './steps.mjs';
import { overBudget, readBudget, tableOf, usage } from './test-budget.mjs';
import { changedFiles, testsOf } from './test-changed.mjs';
import { help, readOptions } from './test-options.mjs';
import { countOf, readRecords } from './test-records.mjs';
import { recordFiles, statementsWithoutPostgres } from './test-statements.mjs';
import { tellStores, testStores } from './test-stores.mjs';

/** Programs that the tests start and that npm cannot install: `{ command: 'chromium', package: 'chromium' }`. */
const debianPackages = [
  { command: 'chromium', package: 'chromium' },
  { command: 'script', package: 'bsdutils' },
  { command: 'nats-server', package: 'nats-server' },
  { command: 'redis-server', package: 'redis-server' },
  { command: 'nginx', package: 'nginx', directories: '/usr/sbin' },
  { command: 'caddy', package: 'caddy' },
  { command: 'strace', package: 'strace' },
  { command: 'zsh', package: 'zsh' },
  // Debian keeps the programs of the server apart, a directory for each version.
  { command: 'initdb', package: 'postgresql', directories: '/usr/lib/postgresql/*/bin' },
];

/** @typedef {ReturnType<typeof readOptions>} Options */
/**
 * @typedef {object} Found
 * @property {number} passed
 * @property {readonly string[]} skipped
 * @property {readonly string[]} failures
 * @property {string} [stop] why not everything ran
 * @property {boolean} [nothing] nothing was to be run
 */

const faultSuites = ['disk', 'load', 'failover'];
const effortOfAll = '10';

/** The suites of fault injection that no test runs, a little of everything; one text for each that finds something. */
async function runFaultSuites() {
  /** @type {string[]} */
  const failures = [];
  for (const name of faultSuites) {
    const result = await runNode(['scripts/run.mjs', 'faults/run.ts', name, '--short']);
    report(`faults ${name}`, result);
    if (result.code !== 0) failures.push(`Failed: npm run faults -- ${name} --short\n`);
  }
  return failures;
}

/** Returns the files to run: by part of their path, or by what a change reaches; all where neither is given. */
async function chosenFilters(/** @type {Options} */ { filters, changed }) {
  if (changed === undefined) return filters;
  const files = await changedFiles(changed);
  const tests = testsOf(files);
  process.stdout.write(`${files.length} files changed; ${tests.length} test files can be reached by that\n`);
  return [...filters, ...tests];
}

function vitestArguments(/** @type {Options} */ { update, testNamePattern }, /** @type {readonly string[]} */ filters) {
  const named = testNamePattern === undefined ? [] : ['-t', testNamePattern];
  return ['node_modules/vitest/vitest.mjs', 'run', ...(update ? ['-u'] : []), ...named, ...filters];
}

async function runTests(/** @type {Options} */ options, /** @type {readonly string[]} */ filters) {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-records-'));
  try {
    const file = join(directory, 'records.json');
    // What runs on which store is the matter of vitest.config.ts.
    const env = {
      ...process.env,
      LATCHKEY_TEST_RECORDS: file,
      LATCHKEY_TEST_POSTGRES: undefined,
      LATCHKEY_TEST_PART: !options.all && filters.length === 0 ? '1' : undefined,
      ...(options.all ? { LATCHKEY_TEST_EFFORT: effortOfAll } : {}),
    };
    /** @type {import('node:child_process').StdioOptions} */
    const stdio = ['ignore', 'inherit', 'inherit'];
    const result = await runNode(vitestArguments(options, filters), { env, stdio });
    report('tests', result);
    return { code: result.code, records: readRecords(file) };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/**
 * Checks that only a run of every test can satisfy: statements that PostgreSQL must have had, and what areas may take.
 */
function lookAtWhole(/** @type {import('./test-records.mjs').Records} */ records, /** @type {Options} */ options) {
  if (options.record) {
    const { before, now } = recordFiles(records, testStores(true).givenOnPostgres);
    process.stdout.write(`scripts/postgres-files.json: ${before} files before, ${now} now\n`);
  }
  const used = usage(records);
  const seconds = used.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
  process.stdout.write(`${Math.round(seconds)} s of CPU in tests\n`);
  if (options.budget) process.stdout.write(`${tableOf(used)}\n`);
  // With every random try the shares are others.
  const over = options.all || options.budget ? [] : overBudget(used, readBudget());
  return [...statementsWithoutPostgres(records), ...over];
}

async function main(/** @type {Options} */ options) {
  requireNode();
  await ensureInstalled();
  await ensureDebianPackages(debianPackages);
  const failedChecks = await runChecks({ keepGoing: false });
  if (failedChecks.length > 0) {
    return { passed: 0, skipped: [], failures: [`Failed: ${failedChecks.join(', ')}\n`], stop: 'Stopped' };
  }
  await ensureBuilt();
  const filters = await chosenFilters(options);
  if (options.changed !== undefined && filters.length === 0)
    return { passed: 0, skipped: [], failures: [], nothing: true };
  const isOfAll = filters.length === 0 && options.testNamePattern === undefined;
  // Tests that need them see to it themselves: here it is seen.
  if (isOfAll) await ensureOutsideClients();
  const { code, records } = await runTests(options, filters);
  const { passed, skipped, failures } = countOf(records);
  process.stdout.write(tellStores(records, options.all));
  const whole = isOfAll && passed > 0 ? lookAtWhole(records, options) : [];
  const faults = options.all ? await runFaultSuites() : [];
  const found = [...failures, ...whole, ...faults];
  if (code !== 0 && found.length === 0) found.push(`Failed: the test run ended with exit code ${code}\n`);
  // With -t all other tests are skipped, which is what was asked for.
  return { passed, skipped: options.testNamePattern === undefined ? skipped : [], failures: found };
}

/** Once more at the very end, for readers who have only the last lines of a long run: what failed, and why. */
function conclude(/** @type {Found} */ { passed, skipped, failures, stop, nothing = false }) {
  const isGreen = (passed > 0 || nothing) && failures.length === 0 && skipped.length === 0;
  const more = skipped.length > 0 ? `, ${skipped.length} skipped` : '';
  for (const failure of failures) process.stdout.write(failure);
  for (const name of skipped) process.stdout.write(`Skipped: ${name}\n`);
  process.stdout.write(`${stop ?? (isGreen ? 'All green' : 'Not green')} after ${inSeconds(performance.now())}\n`);
  process.stdout.write(`${passed} passed, ${failures.length} failed${more}\n`);
  process.exitCode = isGreen ? 0 : 1;
}

try {
  const options = readOptions(process.argv.slice(2));
  if (options.help) process.stdout.write(help);
  else conclude(await main(options));
} catch (error) {
  process.stdout.write(`${error instanceof StepError ? error.message : stackOf(error)}\n0 passed, 1 failed\n`);
  process.exit(1);
}
