import { join } from 'node:path';
import { rolldown } from 'rolldown';

/**
 * Packages that are loaded from node_modules: native ones, those that find files of their own, and those that tools
 * hook into from outside. All others are bundled.
 */
const outside = /^(?:better-sqlite3|sharp|@node-rs\/argon2|swagger-ui-dist|pino-pretty|pg|pg-cursor)(?:\/|$)/;

/**
 * Puts the programs of server and command together of the modules that were compiled into `dist`: loading hundreds of
 * them one by one took longer than everything else at a start, and a third of the memory.
 * @param {string} dist where the modules are
 */
export async function bundle(dist) {
  const bundler = await rolldown({
    input: { server: join(dist, 'server/src/main.js'), latchkey: join(dist, 'cli/src/main.js') },
    external: (id) => id.startsWith('node:') || outside.test(id),
    platform: 'node',
    // Files that a module reads by its own place (pages of the server) go with it.
    experimental: { resolveNewUrlToAsset: true },
  });
  await bundler.write({
    dir: join(dist, 'bin'),
    format: 'esm',
    sourcemap: true,
    chunkFileNames: 'parts/[name]-[hash].js',
  });
  await bundler.close();
}
