// Compiles server and command into dist, for an image; elsewhere `npm start` and `./latchkey` do it by themselves.
import { ensureBuilt } from './setup.mjs';
import { exitWith } from './steps.mjs';

try {
  await ensureBuilt();
} catch (error) {
  exitWith(error);
}
