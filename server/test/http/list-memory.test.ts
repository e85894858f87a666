import { afterAll, beforeAll, expect, it } from 'vitest';
import { watchSqlite } from '../support/statement-watch.ts';
import { type Client, TestApp } from '../support/test-app.ts';

let app: TestApp;
let admin: Client;
beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
});
afterAll(() => app.close());

it.each(['/users', '/users/fetch/with-groups'])('%s reads on a connection that keeps at most 2 MiB', async (path) => {
  // The first long list opens a connection, which later ones use.
  await admin.get(path);
  const kept: unknown[] = [];
  const stop = watchSqlite((sql, connection) => {
    if (/^select .* order by ("id"|"u"\."id", "g"\."id")$/.test(sql))
      kept.push(connection.pragma('cache_size', { simple: true }));
  });
  await admin.get(path);
  stop();
  expect(kept).toEqual([-2_048]);
});
