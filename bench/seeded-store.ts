import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { User } from '../harness/api-client.ts';
import type { Tell } from '../harness/command-line.ts';
import { temporaryFolder } from '../harness/processes.ts';
import { runNode } from './pinned.ts';

interface Size {
  readonly users: number;
  readonly tokens: number;
}

const command = fileURLToPath(new URL('../dist/bin/latchkey.js', import.meta.url));
const cache = fileURLToPath(new URL('./.cache', import.meta.url));
/** What decides what a seeded store holds. */
const sources = ['server/src/db/schema/migrations', 'cli/src/seed'].map((folder) =>
  fileURLToPath(new URL(`../dist/${folder}`, import.meta.url)),
);

/** The administrator of every seeded store. */
export const administrator: User = { email: 'admin@example.com', password: 'Analytical-engine-1843' };

function fingerprint() {
  const hash = createHash('sha256').update(JSON.stringify(administrator));
  for (const folder of sources) {
    const files = readdirSync(folder).filter((name) => name.endsWith('.js'));
    for (const name of files.sort()) hash.update(name).update(readFileSync(join(folder, name)));
  }
  return hash.digest('hex').slice(0, 16);
}

async function runSeed(options: readonly (string | number)[]): Promise<{ readonly token: string }> {
  const args = ['seed', '--json', ...options.map(String)];
  return JSON.parse(await runNode([command, ...args], { core: 'generator', cwd: temporaryFolder() }));
}

async function seed({ users, tokens }: Size): Promise<string> {
  const folder = temporaryFolder();
  const [dataDir, passwordFile] = [join(folder, 'data'), join(folder, 'password')];
  writeFileSync(passwordFile, administrator.password);
  const options = ['--users', users, '--tokens', tokens, '--password-file', passwordFile, '--data-dir', dataDir];
  await runSeed(options);
  return dataDir;
}

/** A token of an administrator with every scope, made without the server; it costs the store one more user. */
export async function printedToken(dataDir: string): Promise<string> {
  const { token } = await runSeed(['--users', 1, '--groups', 0, '--print-token', '--data-dir', dataDir]);
  return token;
}

/** Copies to the cache under another name first: what is there is whole. */
function keep(dataDir: string, kept: string, name: string): void {
  mkdirSync(cache, { recursive: true });
  const older = readdirSync(cache).filter((entry) => entry.startsWith(`${name}-`));
  for (const entry of older) rmSync(join(cache, entry), { recursive: true, force: true });
  const copy = join(cache, `copy-${process.pid}`);
  cpSync(dataDir, copy, { recursive: true });
  renameSync(copy, kept);
}

/**
 * A data directory with so many made-up users and tokens and an `administrator`, the caller's own to write to. It is made
 * with the built command once and kept in bench/.cache, until the schema or what the command makes up changes.
 */
export async function seededStore({ users, tokens }: Size, tell: Tell): Promise<string> {
  const name = `store-${users}-${tokens}`;
  const kept = join(cache, `${name}-${fingerprint()}`);
  if (!existsSync(kept)) {
    tell(`seeding a store with ${users} users and ${tokens} tokens`);
    keep(await seed({ users, tokens }), kept, name);
  }
  const dataDir = join(temporaryFolder(), 'data');
  cpSync(kept, dataDir, { recursive: true });
  return dataDir;
}
