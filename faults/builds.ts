import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../harness/processes.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Where the build is that `entry` is an entry point of: modules each under its own path, programs in `bin`. */
export const buildOf = (entry: string): string => entry.slice(0, entry.lastIndexOf('/dist/') + '/dist'.length);

/** Some text in a file of the build, and what takes its place. */
export interface Edit {
  /** Below dist/server/src. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/**
 * A copy of the built service in a folder of its own, which no later build changes, with some text in its files put
 * in place of other text. Answers its entry point: the program that is run everywhere, or its modules where some are
 * changed. Throws where the text to replace is not there: then the service has changed, and the replacement proves nothing
 * any more.
 */
export function copyOfBuild(edits: readonly Edit[] = []): string {
  const folder = temporaryFolder();
  cpSync(join(root, 'dist'), join(folder, 'dist'), { recursive: true });
  for (const name of ['package.json', 'server/package.json']) {
    cpSync(join(root, name), join(folder, name), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  for (const { file, from, to } of edits) {
    const path = join(folder, 'dist/server/src', file);
    const text = readFileSync(path, 'utf8');
    if (text.split(from).length !== 2) throw new Error(`${file} does not hold once what a mutant replaces: ${from}`);
    writeFileSync(
      path,
      text.replace(from, () => to),
    );
  }
  return join(folder, edits.length === 0 ? 'dist/bin/server.js' : 'dist/server/src/main.js');
}
