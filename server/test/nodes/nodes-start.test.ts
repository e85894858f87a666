import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { StartupError } from '../../src/base/errors.ts';
import { type Client, TestApp } from '../support/test-app.ts';
import { databaseUrl, testStore } from '../support/test-store.ts';
import { TwoNodes } from '../support/two-nodes.ts';

const soon = { timeout: 15_000 };
const key = randomBytes(32).toString('hex');
const otherKey = randomBytes(32).toString('hex');

/** Carries bytes to the database until it is cut. */
class Line {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isCut = false;

  constructor({ hostname, port }: URL) {
    this.#server = createServer((socket) => {
      if (this.#isCut) {
        socket.destroy();
        return;
      }
      const onward = connect(Number(port), hostname);
      for (const end of [socket, onward]) {
        this.#sockets.add(end);
        end.on('error', () => {});
        end.on('close', () => this.#sockets.delete(end));
      }
      socket.pipe(onward).pipe(socket);
    });
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const address = this.#server.address();
    return typeof address === 'object' && address ? address.port : 0;
  }

  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  mend(): void {
    this.#isCut = false;
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}

describe('nodes of one store: start and upgrade', () => {
  let nodes: TwoNodes;
  let admin: Client;
  beforeAll(async () => {
    nodes = await TwoNodes.start({ ENCRYPTION_KEY: key });
    admin = await nodes.a.setUp();
  });
  afterAll(() => nodes.close());

  /** Why another node does not start; it is ended where it does. */
  async function apiError(environment: Readonly<Record<string, string>>): Promise<string> {
    const dataDir = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
    const shared = { DATA_DIR: dataDir, DATABASE_URL: databaseUrl(nodes.a.dataDir) };
    try {
      const app = await TestApp.start({ ...shared, ...environment }, nodes.a.clock);
      await app.stop();
      return 'it started';
    } catch (error) {
      if (!(error instanceof StartupError)) throw error;
      return error.message;
    } finally {
      rmSync(dataDir, { recursive: true });
    }
  }

  it('a node with another ENCRYPTION_KEY, or none, does not start; whatever it signs with (NODE-7)', async () => {
    const why =
      'The signing keys in the store were encrypted with another ENCRYPTION_KEY: give this node the one that the others have';
    expect(await apiError({ ENCRYPTION_KEY: otherKey })).toBe(why);
    expect(await apiError({})).toBe(why);
    const secret = { JWT_ALGORITHM: 'HS256', JWT_SECRET: 'a secret of the tests, long enough for HS256' };
    expect(await apiError({ ENCRYPTION_KEY: otherKey, ...secret })).toBe(why);
    expect(await apiError({ ENCRYPTION_KEY: key })).toBe('it started');
  });

  it('two nodes cannot have one DATA_DIR, even with the store elsewhere (STORE-11, NODE-7)', async () => {
    const { dataDir } = nodes.b;
    expect(await apiError({ ENCRYPTION_KEY: key, DATA_DIR: dataDir }).catch(String)).toContain(
      `Another server is using DATA_DIR ${dataDir}`,
    );
  });

  it('many nodes that start on an empty store at the same moment all run, and the first without a key says so (STORE-9, NODE-7)', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
    const alone = await TestApp.start({ DATA_DIR: dataDir, ENCRYPTION_KEY: '' });
    expect(alone.logLines.join('\n')).toContain('ENCRYPTION_KEY is not set');
    await alone.close();

    await testStore(dataDir);
    const first = { ENCRYPTION_KEY: key, DATABASE_URL: databaseUrl(dataDir) };
    const apps = await Promise.all([1, 2, 3].map(() => TestApp.start(first)));
    const keys = await Promise.all(apps.map(({ anonymous }) => anonymous.get('//.well-known/jwks.json')));
    expect(new Set(keys.map(({ text }) => text)).size).toBe(1);
    for (const app of apps) await app.close();
  });

  it('a node goes on while a newer one beside it adds to the store, and starts again on what says it may (NODE-9)', async () => {
    const { a, b } = nodes;
    const token = await admin.token();
    const look = async () => {
      for (const client of [token, admin, nodes.atB(token), nodes.atB(admin)]) {
        for (const path of ['/org', `/users/${admin.userId}`, '/userGroups', '/users']) {
          const responses = await Promise.all(Array.from({ length: 4 }, () => client.get(path)));
          expect([path, ...new Set(responses.map(({ status }) => status))]).toEqual([path, 200]);
        }
      }
    };
    // So that every statement is prepared on some connections.
    await look();
    const { db } = b.services;
    const steps = db.read.selectFrom('schema_migrations').select((eb) => eb.fn.max('version').as('version'));
    const { version } = await steps.executeTakeFirstOrThrow();
    const next = version + 1;
    const added = ['users', 'organizations', 'personal_access_tokens', 'sessions', 'session_tokens', 'user_groups'];
    await db.transaction(async (tx) => {
      for (const table of added) await tx.schema.alterTable(table).addColumn('added_later', 'text').execute();
      await tx.insertInto('schema_migrations').values({ version: next, name: 'later', applied_at: 0 }).execute();
    });
    // What runs knows nothing of it, and is not disturbed: with every statement that it has prepared.
    await look();
    expect((await a.signInTokens('ada@example.com')).status).toBe(200);
    expect((await admin.post('/users', { fullName: 'Grace Hopper', email: 'grace@example.com' })).status).toBe(201);

    const why = `The store has schema ${next}, this release knows ${version}: start the newer release that wrote it`;
    expect(await apiError({ ENCRYPTION_KEY: key })).toBe(why);
    const says = (from: number) =>
      db.transaction((tx) =>
        tx
          .insertInto('compatible_schemas')
          .values({ version: next, compatible_from: from })
          .onConflict((oc) => oc.column('version').doUpdateSet({ compatible_from: from }))
          .execute(),
      );
    await says(next);
    expect(await apiError({ ENCRYPTION_KEY: key })).toBe(why);
    await says(version);
    expect(await apiError({ ENCRYPTION_KEY: key })).toBe('it started');
  });

  it('503 of /health/ready, and of anyone who asks with a token, while the store is gone; 200 again by itself (RUN-4, STORE-12, NODE-8)', async () => {
    const target = new URL(databaseUrl(nodes.a.dataDir));
    const line = new Line(target);
    target.port = String(await line.listen());
    const app = await TestApp.start({ ENCRYPTION_KEY: key, DATABASE_URL: target.href }, nodes.a.clock);
    const token = await admin.token();
    const at = app.with(token.credential);
    const statuses = async () => [(await app.anonymous.get('//health/ready')).status, (await at.get('/org')).status];
    expect(await statuses()).toEqual([200, 200]);
    line.cut();
    await vi.waitUntil(async () => (await statuses()).join() === '503,503', soon);
    expect((await app.anonymous.get('//health/live')).status).toBe(200);
    expect((await nodes.b.anonymous.get('//health/ready')).status).toBe(200);
    line.mend();
    await vi.waitUntil(async () => (await statuses()).join() === '200,200', soon);
    await app.close();
    line.close();
  });
});
