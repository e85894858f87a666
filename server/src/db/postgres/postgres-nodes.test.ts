import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PostgresPlace } from '../../../test/support/postgres-place.ts';
import { type Client, TestApp } from '../../../test/support/test-app.ts';
import { TestClock } from '../../../test/support/test-clock.ts';
import type { Database } from '../database.ts';
import { migrate, requireCurrentSchema } from '../schema/migrate.ts';

const versions = (db: Database) =>
  db.read.selectFrom('schema_migrations').orderBy('version').select('version').execute();

describe('nodes that begin at the same moment', () => {
  let place: PostgresPlace;
  beforeEach(async () => {
    place = await PostgresPlace.make();
  });
  afterEach(() => place.remove());

  it('all make the store together, each step once (STORE-9, STORE-13)', async () => {
    const nodes = await Promise.all([1, 2, 3, 4].map(() => place.open()));
    await Promise.all(nodes.map((node) => migrate(node, new TestClock())));
    for (const node of nodes) {
      await requireCurrentSchema(node);
      const found = await versions(node);
      expect(found.map(({ version }) => version)).toEqual(found.map((_, number) => number + 1));
    }
    expect(await place.run('select id from writer')).toEqual([{ id: 1 }]);
  });

  it('refuse a store of a newer release, and change nothing of it (STORE-10)', async () => {
    const node = await place.openMigrated();
    const known = (await versions(node)).length;
    await place.run(`insert into schema_migrations values (${known + 1}, 'later', 0)`);
    const said = `The store has schema ${known + 1}, this release knows ${known}: start the newer release that wrote it`;
    await expect(migrate(node, new TestClock())).rejects.toThrow(said);
    await expect(requireCurrentSchema(node)).rejects.toThrow(said);
    expect(await versions(node)).toHaveLength(known + 1);
  });
});

describe('two nodes on one store', () => {
  let first: TestApp;
  let second: TestApp;
  let admin: Client;
  beforeEach(async () => {
    first = await TestApp.start();
    const { DATABASE_URL = '', ENCRYPTION_KEY = '' } = first.environment;
    second = await TestApp.start({ DATABASE_URL, ENCRYPTION_KEY }, first.clock);
    admin = await first.setUp();
  });
  afterEach(async () => {
    await second.close();
    await first.close();
  });

  it('either lets in whom the other one gave a credential, and signs with the same keys (AUTH-34)', async () => {
    const token = await admin.token();
    expect((await second.with(token.credential).get('/org')).status).toBe(200);
    expect((await second.with(admin.credential).get('/org')).status).toBe(200);
    const keys = await Promise.all([first, second].map((app) => app.anonymous.get('//.well-known/jwks.json')));
    expect(keys[1]?.text).toBe(keys[0]?.text);
  });

  it('401: what one revoked, the other lets in no more once that was answered: 60 races (AUTH-27, PAT-16)', async () => {
    const late: unknown[] = [];
    for (let number = 0; number < 60; number += 1) {
      const token = await admin.token();
      const there = second.with(token.credential);
      expect((await there.get('/org')).status).toBe(200);
      const under = [there.get('/org'), there.get('/org')];
      expect((await admin.delete(`/personal-access-tokens/${token.tokenId}`)).status).toBe(200);
      const after = await Promise.all([there.get('/org'), there.get('/org')]);
      if (after.some(({ status }) => status !== 401)) late.push(after.map(({ status }) => status));
      await Promise.all(under);
    }
    expect(late).toEqual([]);
  });
});
