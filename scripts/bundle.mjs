import { join } from 'node:path';
import { rolldown } from 'rolldown';

/** Packages of many ES modules go in. All others are loaded as they are: those that find files of their own, or are native. */
const inside = /^(?:kysely|zod|jose|@modelcontextprotocol\/\w+|openid-client|oauth4webapi)(?:\/|$)/;

/**
 * Puts the programs of server and command together of the modules that were compiled into `dist`: loading hundreds of
 * them one by one took longer than everything else at a start, and a third of the memory.
 * @param {string} dist where the modules are
 */
export async function bundle(dist) {
  const bundler = await rolldown({
    input: { server: join(dist, 'server/src/main.js'), latchkey: join(dist, 'cli/src/main.js') },
    external: (id) => !/^[./]/.test(id) && !inside.test(id),
    platform: 'node',
  });
  await bundler.write({
    dir: join(dist, 'bin'),
    format: 'esm',
    sourcemap: true,
    chunkFileNames: 'parts/[name]-[hash].js',
  });
  await bundler.close();
}
