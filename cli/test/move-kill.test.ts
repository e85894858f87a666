import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { StartupError } from '../../server/src/base/errors.ts';
import { Secret } from '../../server/src/base/secret.ts';
import { openPostgres } from '../../server/src/db/postgres/postgres.ts';
import { openSqlite } from '../../server/src/db/sqlite/sqlite.ts';
import { embedded, embeddedRows } from '../../server/test/support/full-store.ts';
import { PostgresPlace } from '../../server/test/support/postgres-place.ts';
import { ensureServerIsBuilt, ServerProcess, withDirectory } from '../../server/test/support/server-process.ts';
import { latchkey, latchkeyJson } from './command-process.ts';
import { watchedCommand } from './move-process.ts';

beforeAll(ensureServerIsBuilt);
vi.setConfig({ testTimeout: 240_000 });

const key = 'f0e1d2c3b4a5968778695a4b3c2d1e0f'.repeat(2);
const environment = { ENCRYPTION_KEY: key };
const places: PostgresPlace[] = [];
afterAll(() => Promise.all(places.map((place) => place.remove())));

async function makePlace(): Promise<PostgresPlace> {
  const place = await PostgresPlace.make();
  places.push(place);
  return place;
}

/** Returns whether servers and commands may use the embedded store. */
async function isEmbeddedInUse(dataDir: string): Promise<boolean> {
  try {
    await openSqlite(dataDir).close();
    return true;
  } catch (error) {
    expect(error).toBeInstanceOf(StartupError);
    expect(String(error)).toMatch(/was moved to [^\n]+ latchkey move --back$/);
    return false;
  }
}

/** Returns the state that a command finds in the database. */
async function stateOf({ url }: PostgresPlace): Promise<'empty' | 'unfinished' | 'whole'> {
  try {
    await (await openPostgres(new Secret(url), null, { opening: 'use' })).close();
    return 'whole';
  } catch (error) {
    expect(error).toBeInstanceOf(StartupError);
    if (String(error).includes('holds no store')) return 'empty';
    expect(String(error)).toMatch(/The store of DATABASE_URL is not whole[^\n]+$/);
    return 'unfinished';
  }
}

/** Steps around which something else begins to hold, in their order; what is between two of them is more of the same. */
const turningPoints = [
  '^create table writer',
  '^commit',
  '^update writer',
  '^delete from "team_members"',
  '^insert into "users"',
  '^analyze',
  '^select "name", "value" from "counters"',
  '^rename moved.json',
  '^delete from writer',
];

/** A move that was killed before the first step that `killAt` fits, or before none of them where it is empty. */
async function moveUntil(from: string, killAt: string) {
  const [place, dataDir] = [await makePlace(), `${from}-${turningPoints.indexOf(killAt)}`];
  cpSync(from, dataDir, { recursive: true });
  const args = ['move', '--to', place.url, '--data-dir', dataDir];
  const move = watchedCommand({ args, environment, killAt, files: `${dataDir}-move` });
  return { place, dataDir, args, end: await move.end, points: move.points() };
}

type Cut = Awaited<ReturnType<typeof moveUntil>>;

const found = async ({ place, dataDir }: Cut) =>
  `${(await isEmbeddedInUse(dataDir)) ? 'embedded' : 'no embedded'}, ${await stateOf(place)}`;

/** Steps of the operator in each state: the same command, and by force where nothing was decided yet. */
const cures: Readonly<Record<string, readonly (readonly [flags: readonly string[], end: object])[]>> = {
  'embedded, empty': [[[], { code: 0, stderr: '' }]],
  'embedded, unfinished': [
    [[], { code: 1, stderr: expect.stringMatching(/--force deletes/) }],
    [['--force'], { code: 0, stderr: '' }],
  ],
  'no embedded, unfinished': [[[], { code: 0, stderr: '' }]],
};

describe('kill -9 of latchkey move', () => {
  it('at any step leaves one store in use, or none until it is run again, and then everything is moved (CLI-32, STORE-16, STORE-17)', () =>
    withDirectory(async (directory) => {
      const from = join(directory, 'data');
      await latchkeyJson('seed', '--users', '5', '--tokens', '5', '--data-dir', from, '--print-token');
      const rows = embeddedRows(from);
      const whole = await moveUntil(from, '');
      expect(whole.end).toMatchObject({ code: 0, stderr: '' });
      expect(await found(whole)).toBe('no embedded, whole');

      const states = new Set<string>();
      expect(whole.points.at(-1)).toMatch(/^delete from writer/);
      for (const killAt of turningPoints) {
        const where = `before ${killAt}`;
        const cut = await moveUntil(from, killAt);
        expect(cut.end.signal, where).toBe('SIGKILL');
        const state = await found(cut);
        states.add(state);
        expect(embeddedRows(cut.dataDir), where).toEqual(rows);
        expect(Object.keys(cures), where).toContain(state);
        for (const [flags, end] of cures[state] ?? []) {
          expect(await latchkey([...cut.args, ...flags], { environment }), where).toMatchObject(end);
        }
        expect(await found(cut), where).toBe('no embedded, whole');
        expect(await cut.place.run('select id from personal_access_tokens'), where).toHaveLength(6);
      }
      expect([...states].sort()).toEqual(Object.keys(cures));
    }));

  it('while a server runs: it writes again, and what was to be written behind requests meanwhile is not lost (CLI-31, CLI-32, PAT-31)', () =>
    withDirectory(async (directory) => {
      const dataDir = join(directory, 'data');
      const server = await ServerProcess.start({ ...embedded, DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      const session = await server.setUp();
      const made = await server.call('POST', '/personal-access-tokens', { token: session, body: { name: 'x' } });
      const place = await makePlace();
      const args = ['move', '--to', place.url, '--data-dir', dataDir];
      const move = watchedCommand({ args, files: join(directory, 'move'), stopAt: '^analyze' });
      await move.stopped();
      const token: string = made.body.token.accessToken;
      expect((await server.call('GET', '/org', { token })).status).toBe(200);
      const body = { name: 'written', type: 'custom' };
      expect((await server.call('POST', '/userGroups', { token: session, body })).status).toBe(503);
      move.signal('SIGKILL');
      expect((await move.end).signal).toBe('SIGKILL');
      expect((await server.call('POST', '/userGroups', { token: session, body })).status).toBe(201);
      expect((await server.end('SIGTERM')).code).toBe(0);
      expect(existsSync(join(dataDir, 'moved.json'))).toBe(false);
      const [used, ...others] = embeddedRows(dataDir)['personal_access_tokens'] ?? [];
      expect([used?.['last_used_at'], others]).toEqual([expect.any(Number), []]);
    }));
});
