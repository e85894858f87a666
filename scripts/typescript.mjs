// Has Node.js run TypeScript by taking the types away, in the program that imports this and in those that it is loaded into
// with --import. Newer releases of Node.js do that by themselves.
import { readFile } from 'node:fs/promises';
import { register } from 'node:module';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';

if (isMainThread && !('typescript' in process.features && process.features.typescript)) {
  process.setSourceMapsEnabled(true);
  register(import.meta.url);
}

/**
 * What Node.js asks, in a thread of its own, for the text of each module.
 * @type {import('node:module').LoadHook}
 */
export async function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context);
  const { transformSync } = await import('rolldown/utils');
  const path = fileURLToPath(url);
  const { code, errors, map } = transformSync(path, await readFile(path, 'utf8'), {
    sourcemap: true,
    typescript: { onlyRemoveTypeImports: true },
  });
  if (errors.length > 0) throw new Error(errors.map(({ message }) => `${path}: ${message}`).join('\n'));
  const encoded = Buffer.from(JSON.stringify(map)).toString('base64');
  const source = `${code}\n//# sourceMappingURL=data:application/json;base64,${encoded}`;
  return { format: 'module', shortCircuit: true, source };
}
