import { createHash } from 'node:crypto';
import {
  accessSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join, relative } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { withLock } from './lock.mjs';
import { progress } from './progress.mjs';
import { byName, codeOf, root, run, runNode, StepError } from './steps.mjs';

const [majorMin, minorMin] = [20, 19];
const installStamp = join(root, 'node_modules/.latchkey-install.json');
/**
 * Folders that are compiled into `dist`, where each file keeps its path; the bundles in `dist/bin` are made from that.
 */
const sourceFolders = ['server/src', 'cli/src'];
const buildStamp = join(root, 'dist/.latchkey-build');
const lock = join(root, '.cache/setup.lock');

/** Refuses a Node.js that is older than this project can run on. */
export function requireNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > majorMin || (major === majorMin && minor >= minorMin)) return;
  throw new StepError(
    `Node.js ${majorMin}.${minorMin} or newer is needed and this is ${process.versions.node}: https://nodejs.org/en/download`,
  );
}

/** Makes node_modules hold what package-lock.json says. Does nothing, and writes nothing, when it already does. */
export async function ensureInstalled() {
  if (isInstalled()) return;
  await withLock(lock, async () => {
    if (!isInstalled()) await install();
  });
}

/** Compiles server and command when source, settings or the compiler changed. Writes nothing when nothing changed. */
export async function ensureBuilt() {
  const wanted = buildFingerprint();
  if (readText(buildStamp) === wanted) return;
  await withLock(lock, async () => {
    if (readText(buildStamp) !== wanted) await build(wanted);
  });
}

/** @typedef {{ command: string, package: string, directories?: string }} DebianPackage a program and what holds it */

/**
 * Makes the programs of a list `{ command, package }` available: root installs the missing packages, other users get
 * the command that does. `directories`, where a program has it, names further places: `*` stands for any name.
 */
export async function ensureDebianPackages(/** @type {readonly DebianPackage[]} */ wanted) {
  const missing = wanted
    .filter(({ command, directories }) => !hasCommand(command, directories))
    .map((entry) => entry.package);
  if (missing.length === 0) return;
  const install = ['install', '-y', '--no-install-recommends', ...missing];
  if (process.getuid?.() !== 0 || !hasCommand('apt-get')) {
    throw new StepError(`Missing on this machine: ${missing.join(', ')}. Run: sudo apt-get ${install.join(' ')}`);
  }
  // At run level 1 what is installed is not started as a service of the machine.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  await withLock(lock, () =>
    progress(`Installing ${missing.join(', ')} from Debian`, async () => {
      const update = await run('apt-get', ['update', '-qq'], { env });
      const result = await run('apt-get', ['-qq', '-o', 'DPkg::Lock::Timeout=120', ...install], { env });
      if (result.code !== 0) throw new StepError(`${update.output}${result.output}apt-get could not install them`);
    }),
  );
}

/** The native addons are compiled for one version of the module interface: another Node.js needs another install. */
function installState() {
  const lockfile = readText(join(root, 'package-lock.json')) ?? '';
  return { lockfile: sha256(lockfile), node: `${process.platform} ${process.arch} ${process.versions.modules}` };
}

function isInstalled() {
  const state = installState();
  const stamp = readJson(installStamp);
  if (isDeepStrictEqual(stamp, state)) return true;
  const sameNode = stamp === undefined || stamp.node === state.node;
  if (!(sameNode && matchesLockfile())) return false;
  writeIfWritable(installStamp, JSON.stringify(state));
  return true;
}

/**
 * Returns whether npm's own record of node_modules matches package-lock.json: it does after an `npm install` by hand.
 */
function matchesLockfile() {
  const installed = readJson(join(root, 'node_modules/.package-lock.json'))?.packages;
  const wanted = readJson(join(root, 'package-lock.json'))?.packages;
  if (!(installed && wanted)) return false;
  const none = Object.entries(wanted).filter(([path]) => path !== '' && installed[path] === undefined);
  return (
    none.every(([, entry]) => entry.optional) &&
    Object.entries(installed).every(([path, entry]) => isDeepStrictEqual(entry, wanted[path]))
  );
}

async function install() {
  const title = 'Installing packages (about two minutes the first time, most of it compiling SQLite)';
  await progress(title, async (show) => {
    const args = ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'];
    const watch = setInterval(() => show(installPart()), partEveryMs);
    const result = await run('npm', args, { env: installEnvironment() })
      .catch((error) => {
        throw new StepError(
          `npm could not be started (${codeOf(error)}): install it, for example with apt-get install npm`,
        );
      })
      .finally(() => clearInterval(watch));
    if (result.code !== 0) throw new StepError(explainInstall(result.output));
  });
  writeFileSync(installStamp, JSON.stringify(installState()));
}

const partEveryMs = 500;

/** What npm is at: it fetches every package before it compiles the one that is compiled here. */
function installPart() {
  if (existsSync(join(root, 'node_modules/better-sqlite3/build/Release/better_sqlite3.node'))) return 'finishing';
  return existsSync(join(root, 'node_modules/better-sqlite3/build')) ? 'compiling SQLite' : 'fetching packages';
}

/** Environment for compiling: the headers of this Node, where it has them, save a download from nodejs.org. */
function installEnvironment() {
  const prefix = dirname(dirname(process.execPath));
  const header = readText(join(prefix, 'include/node/node_version.h')) ?? '';
  const isOfThisNode = header.includes(`NODE_MODULE_VERSION ${process.versions.modules}\n`);
  const isConfigured = Object.keys(process.env).some((name) => name.toLowerCase() === 'npm_config_nodedir');
  return isOfThisNode && !isConfigured ? { ...process.env, npm_config_nodedir: prefix } : process.env;
}

function explainInstall(/** @type {string} */ output) {
  if (/gyp ERR!.*(-headers\.tar\.gz|nodejs\.org|network connectivity)/.test(output)) {
    return "A package must be compiled, and Node's headers could not be fetched from nodejs.org. Let npm reach it (https_proxy is heeded), or name the directory that has include/node of this Node.js: npm_config_nodedir=<directory> npm start";
  }
  const missing = ['python3', 'make', 'g++'].filter((command) => !hasCommand(command));
  if (!/node-gyp|gyp ERR/.test(output) || missing.length === 0) return `${output}npm ci failed`;
  return `A package must be compiled, which needs ${missing.join(', ')}. Run: apt-get install -y ${missing.join(' ')}`;
}

async function build(/** @type {string} */ fingerprint) {
  // Everything goes first: what the compiler would leave alone may come from a file that is gone.
  removeOld(join(root, 'dist'));
  await progress('Building', async (show) => {
    show('compiling TypeScript');
    const result = await runNode(['node_modules/@typescript/native/bin/tsc', '-p', 'tsconfig.build.json']);
    if (result.code !== 0) throw new StepError(`${result.output}The source does not compile`);
    const isAsset = (/** @type {string} */ path) => !path.endsWith('.ts');
    for (const folder of sourceFolders) {
      cpSync(join(root, folder), join(root, 'dist', folder), { recursive: true, filter: isAsset });
    }
    show('bundling');
    // Needs what was just installed.
    const { bundle } = await import('./bundle.mjs');
    await bundle(join(root, 'dist'));
  });
  writeFileSync(buildStamp, fingerprint);
}

function removeOld(/** @type {string} */ path) {
  try {
    rmSync(path, { recursive: true, force: true });
    mkdirSync(path);
  } catch (error) {
    throw new StepError(`Cannot write to ${path} (${codeOf(error)}): run this once as the owner of the checkout`);
  }
}

function buildFingerprint() {
  const settings = ['package-lock.json', 'tsconfig.base.json', 'tsconfig.build.json', 'scripts/bundle.mjs'];
  const sources = sourceFolders
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.test.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort(byName);
  return sha256(
    [...settings, ...sources].map((path) => `${path} ${sha256(readText(join(root, path)) ?? '')}`).join('\n'),
  );
}

/** Directories of servers, which are often not in the PATH. */
const serverDirectories = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

function hasCommand(/** @type {string} */ command, /** @type {string} */ directories = '') {
  const known = [...(process.env['PATH'] ?? '').split(delimiter), ...serverDirectories, ...existing(directories)];
  return known.some((directory) => {
    try {
      accessSync(join(directory, command), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** The directories that a pattern with one `*` stands for. */
function existing(/** @type {string} */ pattern) {
  const [before = '', after] = pattern.split('*');
  if (after === undefined) return [];
  try {
    return readdirSync(before).map((name) => join(before, name, after));
  } catch {
    return [];
  }
}

function sha256(/** @type {string} */ text) {
  return createHash('sha256').update(text).digest('hex');
}

function readText(/** @type {string} */ path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** The content of a JSON file; undefined when there is none or when it was cut short. */
function readJson(/** @type {string} */ path) {
  try {
    return JSON.parse(readText(path) ?? '');
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function writeIfWritable(/** @type {string} */ path, /** @type {string} */ text) {
  try {
    writeFileSync(path, text);
  } catch {
    // A read-only checkout: the next start compares again, which takes milliseconds.
  }
}
