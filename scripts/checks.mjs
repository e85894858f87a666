import { inSeconds, isStopping, runNode } from './steps.mjs';

/** Everything that is checked without running the product. Each is a program and stands alone; the slow ones go first. */
const checks = [
  { name: 'imports', args: ['scripts/cruise.mjs'] },
  { name: 'dead code', args: ['node_modules/knip/bin/knip.js', '--no-progress'] },
  { name: 'types', args: ['node_modules/@typescript/native/bin/tsc', '-p', 'tsconfig.json'] },
  { name: 'typed lint', args: ['node_modules/oxlint/bin/oxlint'] },
  {
    name: 'format and lint',
    args: ['node_modules/@biomejs/biome/bin/biome', 'ci', '--error-on-warnings', '--colors=off'],
  },
  { name: 'generated files', args: ['scripts/gen.mjs', '--check'] },
];

const atOnce = 2;
/** Some tools colour their output as soon as they see CI, even into a file. */
const plain = { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined };

/**
 * Runs the checks two at a time and prints name and time of each, and the output of those that fail. After a failure no
 * further check starts, unless `keepGoing`. Answers the names of those that failed.
 */
export async function runChecks(/** @type {{ keepGoing: boolean }} */ { keepGoing }) {
  /** @type {string[]} */
  const failed = [];
  const waiting = checks.values();
  const worker = async () => {
    for (const { name, args } of waiting) {
      const result = await runNode(args, { env: plain });
      report(name, result);
      if (result.code !== 0) failed.push(name);
      if (failed.length > 0 && !keepGoing) return;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return failed;
}

/** One line a step; the tool's own words only when it failed. What a signal interrupted has not. Rule: FIT-109. */
export function report(/** @type {string} */ name, /** @type {import('./steps.mjs').Ran} */ { code, output, ms }) {
  if (code !== 0 && isStopping()) return void process.stdout.write(`interrupted  ${name}\n`);
  process.stdout.write(`${code === 0 ? 'ok    ' : 'FAILED'}  ${name.padEnd(16)}${inSeconds(ms)}\n`);
  if (code !== 0 && output !== '') process.stdout.write(`${output.trimEnd()}\n`);
}
