// npm start: on a fresh clone, installs and builds first; then the server runs in this very process, so that signals and
// exit codes are its own.
import { ensureBuilt, ensureInstalled, requireNode } from './setup.mjs';
import { exitWith } from './steps.mjs';

try {
  requireNode();
  await ensureInstalled();
  await ensureBuilt();
} catch (error) {
  exitWith(error);
}
await import(new URL('../dist/bin/server.js', import.meta.url).href);
