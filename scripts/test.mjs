// npm test: installs what is needed, checks, builds, and runs every test; stops at the first step that fails. Its last
// line is `N passed, N failed`, with `, N skipped` when there are any: a skipped test fails the whole, because what is
// not run proves nothing. Arguments go to vitest: `npm test -- create-token` runs the tests of files with that name.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { report, runChecks } from './checks.mjs';
import { ensureOutsideClients } from './outside-clients.mjs';
import { ensureBuilt, ensureDebianPackages, ensureInstalled, requireNode } from './setup.mjs';
import { inSeconds, root, runNode, StepError } from './steps.mjs';

/** Programs that the tests start and that npm cannot install: `{ command: 'chromium', package: 'chromium' }`. */
const debianPackages = [
  { command: 'chromium', package: 'chromium' },
  { command: 'script', package: 'bsdutils' },
  { command: 'nats-server', package: 'nats-server' },
  { command: 'redis-server', package: 'redis-server' },
  { command: 'strace', package: 'strace' },
  { command: 'zsh', package: 'zsh' },
  // Debian keeps the programs of the server apart, a directory for each version.
  { command: 'initdb', package: 'postgresql', directories: '/usr/lib/postgresql/*/bin' },
];

const linesOfFailure = 20;

async function main() {
  requireNode();
  await ensureInstalled();
  await ensureDebianPackages(debianPackages);
  const failed = await runChecks({ keepGoing: false });
  if (failed.length > 0)
    return { passed: 0, failed: failed.length, skipped: [], stop: `Stopped at: ${failed.join(', ')}` };
  await ensureBuilt();
  const filters = process.argv.slice(2);
  // Tests that need them see to it themselves: here it is seen.
  if (filters.length === 0) await ensureOutsideClients();
  return runTests(filters);
}

async function runTests(filters) {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
  try {
    const file = join(directory, 'result.json');
    // What runs on which store is the matter of vitest.config.ts.
    const env = { ...process.env, LATCHKEY_TEST_RESULT: file, LATCHKEY_TEST_POSTGRES: undefined };
    const result = await runNode(['node_modules/vitest/vitest.mjs', 'run', ...filters], {
      env,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    report('tests', result);
    return count(file, result.code);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Vitest's own counts. A file that cannot be loaded, or an error outside any test, counts as one failed test. */
function count(file, code) {
  const result = readResult(file);
  const tests = result.testResults.flatMap(({ assertionResults }) => assertionResults);
  const skipped = tests.filter(({ status }) => !['passed', 'failed'].includes(status)).map(({ fullName }) => fullName);
  const broken = result.testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
  );
  const failed = result.numFailedTests + broken.length;
  const reasons = [
    ...broken.map(({ name, message }) => whyFailed(name, [message])),
    ...whichFailed(result.testResults),
  ];
  return { passed: result.numPassedTests, failed: code === 0 ? failed : Math.max(1, failed), skipped, reasons };
}

/** Once more at the very end: whoever has only the last lines of a long run reads there what was red, and why. */
function whichFailed(files) {
  return files.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === 'failed')
      .map(({ fullName, failureMessages }) => whyFailed(`${name} > ${fullName}`, failureMessages)),
  );
}

function whyFailed(name, messages) {
  const lines = messages.join('\n').split('\n').slice(0, linesOfFailure);
  return `Failed: ${relative(root, name)}\n${lines.map((line) => `    ${line}\n`).join('')}`;
}

function readResult(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return { testResults: [], numPassedTests: 0, numFailedTests: 0 };
  }
}

function conclude({ passed, failed, skipped, reasons = [], stop }) {
  const isGreen = passed > 0 && failed === 0 && skipped.length === 0;
  const more = skipped.length > 0 ? `, ${skipped.length} skipped` : '';
  for (const reason of reasons) process.stdout.write(reason);
  for (const name of skipped) process.stdout.write(`Skipped: ${name}\n`);
  process.stdout.write(`${stop ?? (isGreen ? 'All green' : 'Not green')} after ${inSeconds(performance.now())}\n`);
  process.stdout.write(`${passed} passed, ${failed} failed${more}\n`);
  process.exitCode = isGreen ? 0 : 1;
}

try {
  conclude(await main());
} catch (error) {
  process.stdout.write(`${error instanceof StepError ? error.message : error.stack}\n0 passed, 1 failed\n`);
  process.exit(1);
}
