import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withLock } from './lock.mjs';
import { progress } from './progress.mjs';
import { root, run, StepError } from './steps.mjs';

/** Further releases of Node.js that the product runs on, as packages of the registry, which carry their headers. */
export const nodeVersions = /** @type {const} */ ({ 22: '22.23.5', 24: '24.22.3' });

/** @typedef {keyof typeof nodeVersions} NodeMajor */

const sqlite = 'node_modules/better-sqlite3';
const addon = 'build/Release/better_sqlite3.node';
const modules = join(root, 'node_modules');
const nodePackage = `node-${process.platform}-${process.arch}`;

const placeOf = (/** @type {NodeMajor} */ major) => join(root, '.cache/node', String(major));
/** The programs of a release, and the product as it runs there. */
const pathsOf = (/** @type {NodeMajor} */ major) => ({
  node: join(placeOf(major), 'node_modules', nodePackage, 'bin/node'),
  server: join(placeOf(major), 'tree/dist/bin/server.js'),
});

/** What the compiled addon depends on. */
function fingerprint(/** @type {NodeMajor} */ major) {
  const { version } = JSON.parse(readFileSync(join(root, sqlite, 'package.json'), 'utf8'));
  return `${nodeVersions[major]} better-sqlite3 ${version}`;
}

function isInstalled(/** @type {NodeMajor} */ major) {
  const stamp = join(placeOf(major), 'installed');
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === fingerprint(major);
}

async function orThrow(
  /** @type {string} */ command,
  /** @type {readonly string[]} */ args,
  /** @type {string} */ cwd,
) {
  const { code, output } = await run(command, args, { cwd });
  if (code !== 0) throw new StepError(`${output}${command} failed in ${cwd}`);
}

/**
 * Compiles the binding for another release, without optimization, against the SQLite that npm compiled for this one:
 * SQLite itself does not depend on Node.js, and takes most of the time.
 */
async function compileAddon(/** @type {NodeMajor} */ major, /** @type {string} */ target) {
  const headers = join(placeOf(major), 'node_modules', nodePackage, 'include/node');
  const built = join(root, sqlite, 'build/Release');
  const library = join(built, 'sqlite3.a');
  if (!existsSync(library)) throw new StepError(`${library} is missing: npm rebuild better-sqlite3 compiles it`);
  const defines = ['-DNODE_GYP_MODULE_NAME=better_sqlite3', '-DBUILDING_NODE_EXTENSION'];
  const flags = ['-std=c++20', '-O0', '-fPIC', '-shared', '-fno-rtti', '-fno-exceptions', '-w', ...defines];
  const includes = [`-I${headers}`, `-I${join(built, 'obj/gen/sqlite3')}`];
  const sources = [join(root, sqlite, 'src/better_sqlite3.cpp'), library];
  await orThrow('g++', [...flags, ...includes, ...sources, '-o', target], root);
}

/** Links every package but the one with the addon, which is copied. */
function layOut(/** @type {string} */ tree) {
  mkdirSync(join(tree, sqlite, 'build/Release'), { recursive: true });
  for (const name of readdirSync(modules)) {
    if (name !== 'better-sqlite3' && !name.startsWith('.')) {
      symlinkSync(join(modules, name), join(tree, 'node_modules', name));
    }
  }
  for (const name of ['package.json', 'lib']) {
    cpSync(join(root, sqlite, name), join(tree, sqlite, name), { recursive: true });
  }
}

async function install(/** @type {NodeMajor} */ major) {
  const place = placeOf(major);
  rmSync(place, { recursive: true, force: true });
  const tree = join(place, 'tree');
  mkdirSync(tree, { recursive: true });
  writeFileSync(join(place, 'package.json'), '{ "private": true }\n');
  const title = `Installing Node.js ${nodeVersions[major]} to test with (130 MB, half a minute the first time)`;
  await progress(title, async (show) => {
    show('fetching');
    const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    await orThrow('npm', ['install', ...options, `${nodePackage}@${nodeVersions[major]}`], place);
    layOut(tree);
    show('compiling the SQLite binding');
    await compileAddon(major, join(tree, sqlite, addon));
  });
  writeFileSync(join(place, 'installed'), fingerprint(major));
}

/**
 * Makes the built product run on another release of Node.js: in .cache/node, with a binding of SQLite of its own. Costs
 * once. Answers the paths of that Node.js and of the server's program.
 */
export async function ensureNode(/** @type {NodeMajor} */ major) {
  const paths = pathsOf(major);
  await withLock(join(root, `.cache/node-${major}.lock`), async () => {
    if (!isInstalled(major)) await install(major);
    const programs = join(placeOf(major), 'tree/dist/bin');
    rmSync(programs, { recursive: true, force: true });
    cpSync(join(root, 'dist/bin'), programs, { recursive: true });
  });
  return paths;
}
