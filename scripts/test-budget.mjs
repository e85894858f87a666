import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './steps.mjs';

// docs/test-budget.md says how many files and tests an area may have, and which share of the CPU time of a whole run it may
// take. An area that grows past that fails the run until its row says why. Shares are the same on a slow machine.

/** @typedef {{ area: string, files: number, tests: number, cpuSeconds: number, share: number }} Usage `share` in per cent */
/** @typedef {{ area: string, files: number, tests: number, share: number, why: string }} Allowed */

const budgetFile = join(root, 'docs/test-budget.md');

/**
 * Which area a test file belongs to: the first whose pattern fits. A feature, and a folder of the platform, is an area.
 * @type {readonly (readonly [RegExp, (name: string) => string])[]}
 */
const areas = [
  [/^server\/src\/((?:features|operator)\/[^/]+)\//, (name) => name],
  [/^server\/src\/([^/]+)\//, (name) => name],
  [/^server\/test\/outside-clients\//, () => 'outside clients'],
  [/^server\/test\/[^/]+\/(abuse|nodes|mcp|drill)\b/, (name) => `whole: ${name}`],
  [/^server\/test\//, () => 'whole: others'],
  [/^cli\//, () => 'command'],
];

/** The area of a test file. */
export function areaOf(/** @type {string} */ file) {
  for (const [pattern, name] of areas) {
    const match = pattern.exec(file);
    if (match) return name(match[1] ?? '');
  }
  throw new Error(`${file} belongs to no area of scripts/test-budget.mjs`);
}

/**
 * What each area took in a run, both stores together.
 * @returns {Usage[]}
 */
export function usage(/** @type {Pick<import('./test-records.mjs').Records, 'files'>} */ { files }) {
  /** @type {Map<string, { area: string, files: Set<string>, tests: number, cpuSeconds: number }>} */
  const sums = new Map();
  for (const { file, tests, cpuMs } of files) {
    const area = areaOf(file);
    const sum = sums.get(area) ?? { area, files: new Set(), tests: 0, cpuSeconds: 0 };
    sum.files.add(file);
    sum.tests += tests.length;
    sum.cpuSeconds += cpuMs / 1_000;
    sums.set(area, sum);
  }
  const all = [...sums.values()].reduce((total, { cpuSeconds }) => total + cpuSeconds, 0);
  return [...sums.values()].map((sum) => ({
    ...sum,
    files: sum.files.size,
    share: all === 0 ? 0 : (100 * sum.cpuSeconds) / all,
  }));
}

/** The rows of the table in docs/test-budget.md. */
export function readBudget(/** @type {string} */ text = readFileSync(budgetFile, 'utf8')) {
  const rows = Array.from(text.matchAll(/^\| ([^|]+?) +\| +(\d+) \| +(\d+) \| +(\d+) \| ([^|]*) \|$/gm));
  return rows.map(([, area = '', files, tests, share, why = '']) => ({
    area,
    files: Number(files),
    tests: Number(tests),
    share: Number(share),
    why: why.trim(),
  }));
}

/** One text for each area that has more than its row allows, or no row. */
export function overBudget(/** @type {readonly Usage[]} */ used, /** @type {readonly Allowed[]} */ budget) {
  const rows = new Map(budget.map((row) => [row.area, row]));
  const over = used.flatMap(({ area, ...has }) => {
    const row = rows.get(area);
    if (row === undefined) return [`${area}: has no row`];
    const past = /** @type {const} */ (['files', 'tests', 'share']).filter((name) => has[name] > row[name]);
    return past.map((name) => `${area}: ${name} ${Math.ceil(has[name])}, and the row allows ${row[name]}`);
  });
  return over.map((line) => `Test budget: ${line}. Change the row in docs/test-budget.md and say why there\n`);
}

/** The table for what a run took, with room to grow: a tenth more files and tests (and five tests), half as much CPU again. */
export function tableOf(/** @type {readonly Usage[]} */ used) {
  const row = (/** @type {readonly (string | number)[]} */ cells) => `| ${cells.join(' | ')} |`;
  const rows = [...used]
    .sort((a, b) => b.share - a.share)
    .map(({ area, files, tests, share }) => {
      const room = [Math.ceil(files * 1.1), Math.ceil(tests * 1.1) + 5, Math.ceil(share * 1.5 + 1)];
      return row([area.padEnd(24), ...room.map((number) => String(number).padStart(5)), '']);
    });
  return [row(['Area'.padEnd(24), 'Files', 'Tests', 'CPU %', 'Why so much']), '|---|---:|---:|---:|---|', ...rows].join(
    '\n',
  );
}
