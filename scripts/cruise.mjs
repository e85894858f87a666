// Checks who imports whom (.dependency-cruiser.mjs) and the budgets that no linter knows.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cruise, format } from 'dependency-cruiser';
import config from '../.dependency-cruiser.mjs';
import { kindOf } from './file-kinds.mjs';
import { byName, exitWith, root, StepError } from './steps.mjs';

const sources = ['server/src', 'cli/src', 'harness', 'bench', 'faults', 'scripts'];
/** The peers import packages that are installed when a row needs them. */
const isLookedAt = (/** @type {string} */ path) =>
  /\.(?:ts|mjs)$/.test(path) && !/\.d\.ts$|node_modules\/|\/\.cache\/|^bench\/peers\//.test(path);
const endpointLinesMax = 120;
const runtimeDependenciesMax = 26;

function sourceFiles() {
  return sources
    .flatMap((source) =>
      readdirSync(join(root, source), { recursive: true, encoding: 'utf8' }).map((path) => `${source}/${path}`),
    )
    .filter(isLookedAt)
    .sort(byName);
}

/** @returns {Promise<string[]>} */
async function cruiseSource(/** @type {readonly string[]} */ files) {
  const { forbidden, options } = config;
  const given = { ...options, ruleSet: forbidden === undefined ? {} : { forbidden }, validate: true, baseDir: root };
  const { output } = await cruise([...files], given);
  if (typeof output === 'string') throw new StepError(output);
  // Without a TypeScript that it can load, dependency-cruiser sees no module and finds no fault.
  const cruised = output.modules.map(({ source: path }) => path).filter((path) => files.includes(path));
  if (files.length === 0 || cruised.length !== files.length) {
    throw new StepError(
      `Only ${cruised.length} of the ${files.length} files under ${sources.join(' and ')} were looked at`,
    );
  }
  const circle = featureCircle(output.modules);
  const faults = circle.length > 0 ? [`These features need each other in a circle: ${circle.join(', ')}`] : [];
  if (output.summary.violations.length === 0) return faults;
  const { output: report } = await format(output, { outputType: 'err-long' });
  return [typeof report === 'string' ? report.trim() : JSON.stringify(report), ...faults];
}

/** The features that are left when those that need none of the others are taken away, again and again. */
function featureCircle(/** @type {readonly import('dependency-cruiser').IModule[]} */ modules) {
  const featureOf = (/** @type {string} */ path) => /^server\/src\/features\/([^/]+)\//.exec(path)?.[1];
  /** @type {Map<string, readonly (string | undefined)[]>} */
  const needs = new Map();
  for (const { source: path, dependencies } of modules) {
    const feature = featureOf(path);
    if (feature === undefined || kindOf(path) === 'test') continue;
    const others = dependencies.map(({ resolved }) => featureOf(resolved)).filter((other) => other !== feature);
    needs.set(feature, [...(needs.get(feature) ?? []), ...others]);
  }
  for (;;) {
    const free = [...needs.keys()].filter(
      (feature) => !needs.get(feature)?.some((other) => other !== undefined && needs.has(other)),
    );
    if (free.length === 0) return [...needs.keys()];
    for (const feature of free) needs.delete(feature);
  }
}

function checkBudgets(/** @type {readonly string[]} */ files) {
  const long = files
    .filter((path) => kindOf(path) === 'endpoint')
    .map((path) => ({ path, lines: readFileSync(join(root, path), 'utf8').split('\n').length - 1 }))
    .filter(({ lines }) => lines > endpointLinesMax)
    .map(({ path, lines }) => `${path} has ${lines} lines; an endpoint file has at most ${endpointLinesMax}`);
  const { dependencies } = JSON.parse(readFileSync(join(root, 'server/package.json'), 'utf8'));
  const count = Object.keys(dependencies).length;
  const many =
    count > runtimeDependenciesMax ? [`${count} runtime dependencies; at most ${runtimeDependenciesMax}`] : [];
  return [...long, ...many];
}

try {
  const files = sourceFiles();
  const faults = [...(await cruiseSource(files)), ...checkBudgets(files)];
  if (faults.length > 0) throw new StepError(faults.join('\n'));
} catch (error) {
  exitWith(error);
}
