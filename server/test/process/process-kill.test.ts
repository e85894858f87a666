import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { tries } from '../support/effort.ts';
import { ensureServerIsBuilt, readStore, ServerProcess, withDirectory } from '../support/server-process.ts';
import { organization } from '../support/test-app.ts';

const rounds = tries(10);
const workers = 6;
const timeoutMs = 120_000;

beforeAll(ensureServerIsBuilt);

/** Kills a server as soon as there is a response, and starts the next one on the same data. */
async function restart(server: ServerProcess, dataDir: string): Promise<ServerProcess> {
  const { signal } = await server.end('SIGKILL');
  expect(signal).toBe('SIGKILL');
  return ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
}

/** A column of a query, sorted. */
function column(dataDir: string, sql: string): unknown[] {
  return readStore(dataDir, `SELECT value FROM (${sql}) AS wanted ORDER BY value`).map(({ value }) => value);
}

/** Every user has its event, in order and without gaps, and every token its audit row: nothing is half there. */
function expectConsistentStore(dataDir: string): void {
  const events = readStore(dataDir, 'SELECT sequence, event_type, payload FROM outbox ORDER BY sequence');
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, place) => place + 1));
  const added = events.filter(({ event_type }) => event_type === 'userAdded');
  const users = readStore(dataDir, 'SELECT id, slug FROM users ORDER BY length(slug), slug');
  expect(added.map(({ payload }) => JSON.parse(payload).userId)).toEqual(users.map(({ id }) => id));
  expect(users.map(({ slug }) => slug)).toEqual(users.map((_, place) => `user-${1_001 + place}`));
  const counted = readStore(dataDir, "SELECT value FROM counters WHERE name = 'user'");
  expect(counted).toEqual([{ value: 1_000 + users.length }]);
  const everyone =
    "SELECT m.user_id AS value FROM group_members m JOIN user_groups g ON g.id = m.group_id WHERE g.type = 'everyone'";
  expect(column(dataDir, everyone)).toEqual(column(dataDir, 'SELECT id AS value FROM users'));
  const audited = (action: string) =>
    column(dataDir, `SELECT subject_id AS value FROM audit_log WHERE action = '${action}'`);
  const tokens = 'SELECT id AS value FROM personal_access_tokens';
  expect(audited('token.created')).toEqual(column(dataDir, tokens));
  expect(audited('token.revoked')).toEqual(column(dataDir, `${tokens} WHERE revoked_at IS NOT NULL`));
}

describe('kill -9 the moment a write was answered', () => {
  it(
    'loses nothing of POST /org, POST /users, POST and DELETE of a token, sign-in, refresh and logout (STORE-2, AUTH-31)',
    () =>
      withDirectory(async (dataDir) => {
        let server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
        expect((await server.call('POST', '/org', { body: organization })).status).toBe(200);
        server = await restart(server, dataDir);
        expect((await server.call('GET', '/org/exists')).body).toEqual({ exists: true });
        expect((await server.call('POST', '/org', { body: organization })).status).toBe(409);

        const pair = await server.signIn();
        server = await restart(server, dataDir);
        const token = pair.accessToken;
        expect((await server.call('GET', '/org', { token })).status).toBe(200);

        const user = await server.call('POST', '/users', {
          token,
          body: { fullName: 'Grace', email: 'grace@example.com' },
        });
        expect(user.status).toBe(201);
        server = await restart(server, dataDir);
        expect((await server.call('GET', `/users/${user.body._id}`, { token })).body).toEqual(user.body);

        const made = await server.call('POST', '/personal-access-tokens', { token, body: { name: 'kept' } });
        expect(made.status).toBe(201);
        const { id, accessToken } = made.body.token;
        server = await restart(server, dataDir);
        expect((await server.call('GET', '/org', { token: accessToken })).status).toBe(200);

        expect((await server.call('DELETE', `/personal-access-tokens/${id}`, { token })).status).toBe(200);
        server = await restart(server, dataDir);
        const revoked = await server.call('GET', '/org', { token: accessToken });
        expect(revoked).toMatchObject({ status: 401, body: { error: { code: 'TOKEN_REVOKED' } } });

        const refreshed = await server.call('POST', '/userAccount/refresh/token', { token: pair.refreshToken });
        expect(refreshed.status).toBe(200);
        server = await restart(server, dataDir);
        const next = refreshed.body.accessToken;
        expect((await server.call('GET', '/org', { token: next })).status).toBe(200);

        expect((await server.call('POST', '/userAccount/logout/manual', { token: next })).status).toBe(200);
        server = await restart(server, dataDir);
        for (const ended of [token, next]) {
          const response = await server.call('GET', '/org', { token: ended });
          expect(response).toMatchObject({ status: 401, body: { error: { code: 'SESSION_EXPIRED' } } });
        }
        await server.end('SIGKILL');
        expectConsistentStore(dataDir);
      }),
    timeoutMs,
  );
});

interface Acknowledged {
  readonly users: string[];
  readonly tokens: Map<string, string>;
  /** Asked for, and perhaps carried out without an answer. */
  readonly revoking: Set<string>;
  readonly revoked: string[];
}

/** Writes of all kinds, one after another, until the server is gone. */
async function work(
  server: ServerProcess,
  { session, name, done }: { session: string; name: string; done: Acknowledged },
) {
  for (let count = 0; ; count += 1) {
    const body = { fullName: 'Somebody', email: `${name}-${count}@example.com` };
    const user = await server.call('POST', '/users', { token: session, body });
    if (user.status === 201) done.users.push(user.body._id);
    const made = await server.call('POST', '/personal-access-tokens', { token: session, body: { name } });
    const { id, accessToken } = made.body.token;
    done.tokens.set(id, accessToken);
    await server.call('GET', '/org', { token: accessToken });
    if (count % 2 === 0) continue;
    done.revoking.add(id);
    const gone = await server.call('DELETE', `/personal-access-tokens/${id}`, { token: session });
    if (gone.status === 200) done.revoked.push(id);
  }
}

async function expectKept(server: ServerProcess, session: string, done: Acknowledged): Promise<void> {
  const { body: users } = await server.call('GET', '/users', { token: session });
  const present = new Set(users.map((user: { _id: string }) => user._id));
  expect(done.users.filter((id) => !present.has(id))).toEqual([]);
  for (const [id, token] of done.tokens) {
    const { status, body } = await server.call('GET', '/org', { token });
    const isRevoked = body.error?.code === 'TOKEN_REVOKED';
    const isAsAnswered = done.revoked.includes(id) ? isRevoked : status === 200 || (isRevoked && done.revoking.has(id));
    expect(isAsAnswered, `token ${id} is answered ${status}`).toBe(true);
  }
}

describe('kill -9 under load', () => {
  it(
    `loses no acknowledged write and leaves nothing half done, ${rounds} times in a row (STORE-1, STORE-2, EVENT-8)`,
    () =>
      withDirectory(async (dataDir) => {
        let server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
        const session = await server.setUp();
        for (let round = 0; round < rounds; round += 1) {
          const done: Acknowledged = { users: [], tokens: new Map(), revoking: new Set(), revoked: [] };
          const working = Array.from({ length: workers }, (_, place) =>
            work(server, { session, name: `r${round}w${place}`, done }).catch((error: Error) => error.message),
          );
          const killAfter = randomInt(1, 60);
          for (
            let waited = 0;
            done.users.length + done.tokens.size + done.revoked.length < killAfter && waited < 5_000;
            waited += 1
          ) {
            await sleep(1);
          }
          await server.end('SIGKILL');
          // Only the kill ends their work.
          for (const reason of await Promise.all(working))
            expect(reason).toMatch(/fetch failed|terminated|JSON|socket/);
          expectConsistentStore(dataDir);
          server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
          await expectKept(server, session, done);
        }
        expect((await server.end('SIGTERM')).code).toBe(0);
      }),
    timeoutMs,
  );
});
