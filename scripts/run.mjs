// Runs a program of bench/ or faults/ with its arguments: `node scripts/run.mjs bench/run.ts --help`. Installs what is missing.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureInstalled, requireNode } from './setup.mjs';
import { exitWith, root } from './steps.mjs';

try {
  requireNode();
  await ensureInstalled();
} catch (error) {
  exitWith(error);
}
await import('./typescript.mjs');
const [program = ''] = process.argv.splice(2, 1);
await import(pathToFileURL(join(root, program)).href);
