import pino from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PostgresPlace } from '../../test/postgres-place.ts';
import { Secret } from '../secret.ts';
import { openPostgres } from './postgres.ts';
import { undurableSettings } from './postgres-durability.ts';

let place: PostgresPlace;
beforeEach(async () => {
  place = await PostgresPlace.make();
});
afterEach(() => place.remove());

/** What of it is off by the server's own configuration, which nobody can change for one database. */
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

  it('is a line of the log at the start (STORE-19)', async () => {
    await set('off');
    const lines: string[] = [];
    const log = pino({ base: null }, { write: (line) => void lines.push(line) });
    const db = await openPostgres(new Secret(place.url), log);
    await db.close();
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 40, settings: [...(await serverWide()), 'synchronous_commit'] },
    ]);
  });
});
