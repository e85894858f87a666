import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Tell } from '../harness/command-line.ts';

const here = fileURLToPath(new URL('.', import.meta.url));

function changedAtMs(file: string): number {
  return statSync(new URL(file, import.meta.url), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** Installs the peers' packages in bench/ when they are missing or older than the lock file; throws when that fails. */
export function installPeers(tell: Tell): void {
  // npm writes this file last, so it tells of a whole installation.
  if (changedAtMs('./node_modules/.package-lock.json') >= changedAtMs('./package-lock.json')) return;
  tell('installing the peers in bench/ (npm ci)');
  const npm = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
    cwd: here,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (npm.status !== 0) throw new Error(`npm ci in bench/ failed (${npm.error?.message ?? `exit code ${npm.status}`})`);
}
