import { readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { root } from './steps.mjs';

/** @typedef {{ name: string, state: string, errors: readonly string[] }} TestRecord */
/**
 * @typedef {object} FileRecord
 * @property {string} project
 * @property {string} file
 * @property {string} state
 * @property {number} ms
 * @property {number} cpuMs
 * @property {readonly string[]} statements
 * @property {readonly TestRecord[]} tests
 * @property {readonly string[]} errors
 */
/** @typedef {Omit<FileRecord, 'ms' | 'cpuMs' | 'statements'>} Judged what of a file says whether it is green */
/** @typedef {{ files: readonly FileRecord[], errors: readonly string[] }} Records what a test run found, as `npm test` reads it */

const linesOfFailure = 20;

function messagesOf(/** @type {readonly unknown[] | undefined} */ errors) {
  return (errors ?? []).map((/** @type {any} */ { message, stack, diff }) =>
    [stack ?? message, diff].filter(Boolean).join('\n'),
  );
}

function fileRecord(/** @type {import('vitest/node').TestModule} */ module) {
  const { duration, collectDuration } = module.diagnostic();
  const { cpuMs = 0, statements = [] } = Object(module.meta()).record ?? {};
  const tests = Array.from(module.children.allTests(), (test) => {
    const { state, errors } = test.result();
    return { name: test.fullName, state, errors: messagesOf(errors) };
  });
  const errors = [...messagesOf(module.errors()), ...Array.from(module.children.allSuites(), suiteErrors).flat()];
  return {
    project: module.project.name,
    file: relative(root, module.moduleId),
    state: module.state(),
    ms: Math.round(duration + collectDuration),
    cpuMs,
    statements,
    tests,
    errors,
  };
}

function suiteErrors(/** @type {import('vitest/node').TestSuite} */ suite) {
  return messagesOf(suite.errors());
}

/**
 * A reporter that writes the records of a run where LATCHKEY_TEST_RECORDS says, if it says so.
 * @type {import('vitest/node').Reporter}
 */
export const recordWriter = {
  onTestRunEnd(modules, errors) {
    const target = process.env['LATCHKEY_TEST_RECORDS'];
    if (target === undefined) return;
    writeFileSync(target, JSON.stringify({ files: modules.map(fileRecord), errors: messagesOf(errors) }));
  },
};

/**
 * The records of a run; of one that ended before it wrote any, a single error.
 * @returns {Records}
 */
export function readRecords(/** @type {string} */ path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return { files: [], errors: ['The test run ended before it could write its results'] };
  }
}

/** Returns whether something failed that is no test: a file that cannot be loaded, a hook, something left behind. */
function isBrokenOutsideTests(/** @type {Judged} */ { state, tests }) {
  return state === 'failed' && tests.every((test) => test.state !== 'failed');
}

/** Counts, names of skipped tests, and one text for each failure. What fails outside of any test counts as one. */
export function countOf(/** @type {{ files: readonly Judged[], errors: readonly string[] }} */ { files, errors }) {
  const tests = files.flatMap((file) => file.tests.map((test) => ({ ...test, of: file })));
  const failures = [
    ...files.filter(isBrokenOutsideTests).map((file) => textOfFailure(file, file.errors)),
    ...tests
      .filter(({ state }) => state === 'failed')
      .map((test) => textOfFailure(test.of, test.errors, ` > ${test.name}`)),
    ...errors.map((error) => textOfFailure({ file: 'outside of any test file' }, [error])),
  ];
  return {
    passed: tests.filter(({ state }) => state === 'passed').length,
    skipped: tests
      .filter(({ state }) => !['passed', 'failed'].includes(state))
      .map(({ of, name }) => `${of.file} > ${name}`),
    failures,
  };
}

function textOfFailure(
  /** @type {{ file: string, project?: string }} */ { project, file },
  /** @type {readonly string[]} */ messages,
  /** @type {string} */ test = '',
) {
  const lines = messages.join('\n').split('\n').slice(0, linesOfFailure);
  const where = project === undefined ? file : `${file} (${project})`;
  return `Failed: ${where}${test}\n${lines.map((line) => `    ${line}\n`).join('')}`;
}
