import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { root, run, StepError } from './steps.mjs';
import { reachedBy, testStores } from './test-stores.mjs';

/** Files that put everything together: by these each test reaches everything, so nothing is concluded from them. */
const hubs = [
  /^server\/src\/(?:process\/(?:compose[\w-]*|serve)|main|services|routes\.gen)\.ts$/,
  /^server\/test\/support\/(?:test-app|contract-check)\.ts$/,
  /^cli\/src\/(?:commands|command-line|main)\.ts$/,
];
const isHub = (/** @type {string} */ file) => hubs.some((pattern) => pattern.test(file));

/** Tests of all endpoints, rules and files, which any change may affect. */
const acrossAll = ['architecture', 'access-matrix', 'openapi', 'refusals', 'mcp-tools'];
/** Tests that compare the documents with the source: a change of either can break them. */
const ofDocuments = /^document-[\w-]+\.test\.ts$/;

async function git(/** @type {string[]} */ ...args) {
  const { code, output } = await run('git', args);
  if (code !== 0) throw new StepError(`git ${args.join(' ')}: ${output.trim()}`);
  return output.split('\n').filter(Boolean);
}

/** Files that differ from a commit: from the last one, or where nothing does, those that the last commit changed. */
export async function changedFiles(/** @type {string} */ since) {
  const untracked = await git('ls-files', '--others', '--exclude-standard');
  if (since !== '') return [...(await git('diff', '--name-only', since)), ...untracked];
  const changed = [...(await git('diff', '--name-only', 'HEAD')), ...untracked];
  return changed.length > 0 ? changed : git('diff', '--name-only', 'HEAD~1', 'HEAD');
}

/**
 * Returns the test files that a change can reach: those that changed, those that import what changed (other than by the
 * files that put everything together), those next to it, those that name it, and those that check all endpoints.
 */
export function testsOf(/** @type {readonly string[]} */ changed) {
  const { all } = testStores(true);
  const isSource = changed.some((file) => /^(?:server|cli)\/src\/.*(?<!\.test)\.ts$/.test(file));
  const isDocumented = isSource || changed.some((file) => /\.md$|^scripts\/|package\.json$/.test(file));
  const folders = new Set(changed.filter((file) => /^(?:server|cli)\/src\/.+\//.test(file)).map(dirname));
  // Names that others have too say nothing.
  const names = changed
    .map((file) => basename(file))
    .filter((name) => !/^(?:public|README|package(?:-lock)?|tsconfig)\b/.test(name));
  return all.filter((test) => {
    if (changed.includes(test) || folders.has(dirname(test))) return true;
    if (isSource && acrossAll.some((name) => basename(test) === `${name}.test.ts`)) return true;
    if (isDocumented && ofDocuments.test(basename(test))) return true;
    const reached = reachedBy(test, isHub);
    if (changed.some((file) => reached.has(file))) return true;
    const text = readFileSync(join(root, test), 'utf8');
    return names.some((name) => text.includes(name));
  });
}
