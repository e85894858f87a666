import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withLock } from './lock.mjs';
import { progress } from './progress.mjs';
import { root, run, StepError } from './steps.mjs';

const source = join(root, 'server/test/outside-clients');
const target = join(root, '.cache/outside-clients');
const stamp = join(target, 'installed');
const lock = join(root, '.cache/outside-clients.lock');
const files = ['package.json', 'package-lock.json'];

/**
 * Installs third-party clients that tests use in .cache/outside-clients. They are apart from the product's
 * dependencies: some need a newer Node.js, which is installed with them. None of their scripts runs.
 */
export async function ensureOutsideClients() {
  if (isInstalled()) return;
  await withLock(lock, async () => {
    if (!isInstalled()) await install();
  });
}

function fingerprint() {
  const texts = files.map((name) => readFileSync(join(source, name), 'utf8'));
  const hash = createHash('sha256').update(texts.join('\n')).digest('hex');
  return `${hash} ${process.platform} ${process.arch}`;
}

function isInstalled() {
  try {
    return readFileSync(stamp, 'utf8') === fingerprint();
  } catch {
    return false;
  }
}

async function install() {
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  for (const name of files) cpSync(join(source, name), join(target, name));
  await progress('Installing clients to test with (470 MB, half a minute the first time)', async () => {
    const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    const { code, output } = await run('npm', args, { cwd: target });
    if (code !== 0) throw new StepError(`${output}npm ci failed in ${target}`);
  });
  writeFileSync(stamp, fingerprint());
}
