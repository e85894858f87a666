import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PostgresPlace } from '../../../test/support/postgres-place.ts';
import { ensureServerIsBuilt, ServerProcess, withDirectory } from '../../../test/support/server-process.ts';
import { undurableSettings } from './postgres-durability.ts';

beforeAll(ensureServerIsBuilt);

let place: PostgresPlace;
beforeEach(async () => {
  place = await PostgresPlace.make();
});
afterEach(() => place.remove());

/** Returns the settings that are off by the server's own configuration, which cannot be changed for one database. */
async function serverWide(): Promise<readonly unknown[]> {
  const rows = await place.run(
    "select name from pg_settings where name in ('fsync', 'full_page_writes') and setting = 'off' order by name",
  );
  return rows.map(({ name }) => name);
}
const set = (value: string) => place.run(`alter database ${place.name} set synchronous_commit = ${value}`);

describe('a PostgreSQL that does not wait until a commit is on the disk', () => {
  it('is told by its setting, as sessions have it (STORE-19)', async () => {
    await set('off');
    expect(await undurableSettings((await place.open()).read)).toEqual([...(await serverWide()), 'synchronous_commit']);
    for (const value of ['local', 'remote_write', 'on', 'remote_apply']) {
      await set(value);
      expect(await undurableSettings((await place.open()).read)).toEqual(await serverWide());
    }
  });

  it('is a line of the log once the server listens (STORE-19)', () =>
    withDirectory(async (dataDir) => {
      await set('off');
      const settings = [...(await serverWide()), 'synchronous_commit'];
      const environment = { DATA_DIR: dataDir, DATABASE_URL: place.url, ENCRYPTION_KEY: 'f0e1d2c3b4a59687'.repeat(4) };
      const server = await ServerProcess.start(environment);
      await server.call('GET', '/org/exists');
      const { code, stdout } = await server.end('SIGTERM');
      expect(code).toBe(0);
      expect(stdout).toContain(
        `"settings":${JSON.stringify(settings)},"msg":"PostgreSQL may lose what it acknowledges`,
      );
    }));
});
