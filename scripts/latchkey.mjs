// ./latchkey: on a fresh clone, installs and builds first; then the command runs in this very process. What that says
// goes to the standard error: the standard output is the command's own.
import { ensureBuilt, ensureInstalled, requireNode } from './setup.mjs';
import { exitWith } from './steps.mjs';

try {
  requireNode();
  await ensureInstalled();
  await ensureBuilt();
} catch (error) {
  exitWith(error);
}
await import(new URL('../dist/bin/latchkey.js', import.meta.url).href);
