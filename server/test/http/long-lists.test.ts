import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { text as textOfStream } from 'node:stream/consumers';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { second } from '../../src/base/clock.ts';
import type { Database } from '../../src/db/database.ts';
import { addManyUsers } from '../support/many-users.ts';
import { RawConnection, requestText } from '../support/raw-http.ts';
import { isStoreLeft, isTimeHeld } from '../support/second-connection.ts';
import { diskError, watchStatements } from '../support/statement-watch.ts';
import { type Client, type Json, TestApp } from '../support/test-app.ts';
import { isOnPostgres } from '../support/test-store.ts';

/** Each list takes a connection, of which PostgreSQL has fewer to give. */
const atOnceMax = isOnPostgres ? 8 : 16;
const ofOneMax = 4;
const lists = ['/users', '/users/fetch/with-groups'] as const;

const sockets = new Set<Socket>();
afterAll(() => {
  for (const socket of sockets) socket.destroy();
});

/** Opens a list and reads nothing of its body yet. */
async function openList(app: TestApp, { credential }: Client, path = '/users'): Promise<IncomingMessage> {
  const sent = request(`${app.url}/api/v1${path}`, {
    headers: { authorization: `Bearer ${credential}` },
    agent: false,
  });
  const [response] = (await once(sent.end(), 'response')) as [IncomingMessage];
  sockets.add(response.socket);
  return response;
}

async function released(app: TestApp): Promise<boolean> {
  for (let tries = 0; tries < 200 && isTimeHeld(app); tries += 1) await setTimeout(10);
  return !isTimeHeld(app);
}

describe('lists of any length', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  it('200: the same JSON around each boundary of a batch, and nothing is held afterwards (USER-1, USER-19)', async () => {
    let count = 1;
    for (const wanted of [1, 199, 200, 201, 399, 400, 401]) {
      if (wanted > count) await addManyUsers(app, wanted - count);
      count = wanted;
      const expected = Array.from({ length: wanted }, (_, at) => (at === 0 ? 'ada' : `user${1_001 + at}`));
      for (const path of lists) {
        const { status, headers, body } = await admin.get(path);
        expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
        expect(headers.get('cache-control')).toBe('no-store');
        expect(body.map(({ email }: Json) => email)).toEqual(expected.map((local) => `${local}@example.com`));
      }
    }
    expect(isTimeHeld(app)).toBe(false);
  });

  it('200: 5,000 users are what paging gives, and what GET /users/:id gives (USER-1, USER-14)', async () => {
    await addManyUsers(app, 5_000 - 401, (number) => {
      return { email: `${'x'.repeat(number % 60)}p${number}@example.com`, fullName: `"${number}" \\ 山 \u{1F600} <b>` };
    });
    const { body, headers } = await admin.get('/users');
    expect([body.length, headers.get('transfer-encoding')]).toEqual([5_000, 'chunked']);
    const paged: Json[] = [];
    for (let page = 1; page <= 50; page += 1) {
      paged.push(...(await admin.get(`/users?sortBy=createdAt&limit=100&page=${page}`)).body.users);
    }
    // Items of pages have more fields (FIT-76).
    const known = new Set(body.flatMap((user: Json) => Object.keys(user)));
    const alike = paged.map((user) => Object.fromEntries(Object.entries(user).filter(([name]) => known.has(name))));
    expect(JSON.stringify(alike) === JSON.stringify(body)).toBe(true);
    expect((await admin.get(`/users/${body[2_345]._id}`)).body).toEqual(body[2_345]);
    const grouped = (await admin.get('/users/fetch/with-groups')).body;
    expect(grouped.map(({ _id }: Json) => _id)).toEqual(body.map(({ _id }: Json) => _id));
  });

  it('200: a client of HTTP/1.0 gets all, unchunked, and the connection closes after it', async () => {
    const headers = [`Authorization: Bearer ${admin.credential}`];
    const caller = new RawConnection(app).send(requestText('GET /api/v1/users HTTP/1.0', headers));
    const { text, closed } = await caller.closed(10_000);
    caller.destroy();
    const [head = '', ...body] = text.split('\r\n\r\n');
    expect([closed, head.split('\r\n')[0]]).toEqual([true, 'HTTP/1.1 200 OK']);
    expect(head.toLowerCase()).not.toContain('transfer-encoding');
    expect(JSON.parse(body.join(''))).toHaveLength(5_000);
    expect(isTimeHeld(app)).toBe(false);
  });

  it.each(lists)('200: HEAD %s opens no list: a hundred at once take no place of those that read', async (path) => {
    const reads: string[] = [];
    const stop = watchStatements((sql) => void reads.push(sql));
    const heads = Array.from({ length: 100 }, () => admin.call('HEAD', path));
    const statuses = (await Promise.all(heads)).map(({ status }) => status);
    stop();
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(reads.filter((sql) => /from "users"/.test(sql) && /order by/.test(sql))).toEqual([]);
    expect((await admin.get(path)).status).toBe(200);
  });

  it.each(lists)('200: HEAD %s is answered without a body, and nothing is held afterwards', async (path) => {
    for (let count = 0; count < 3; count += 1) {
      const { status, text, headers } = await admin.call('HEAD', path);
      expect([status, text, headers.get('content-type')]).toEqual([200, '', 'application/json; charset=utf-8']);
    }
    expect(await released(app)).toBe(true);
  });
});

describe('long lists and what goes wrong', () => {
  let app: TestApp;
  let admin: Client;
  const members: Client[] = [];
  const made = 15_000;
  /** With the administrator and four members. */
  const total = made + 5;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    for (let made = 0; made < 4; made += 1) members.push(await app.member(admin, `member${made}@example.com`));
    // Far more than the buffers of a connection take in, so that a list waits for its reader.
    const fullName = '山'.repeat(250);
    for (let done = 0; done < made; done += 5_000) {
      await addManyUsers(app, 5_000, (number) => ({ email: `long${number}@example.com`, fullName }));
    }
  });
  afterAll(() => app.close());

  async function openWhenAdmitted(client: Client): Promise<IncomingMessage> {
    for (let tries = 0; tries < 200; tries += 1) {
      const response = await openList(app, client);
      if (response.statusCode === 200) return response;
      response.resume();
      await setTimeout(10);
    }
    throw new Error('never admitted again');
  }

  const linesOf = (pattern: RegExp) =>
    app.logLines.filter((line) => pattern.test(line)).map((line) => JSON.parse(line));

  it.each(lists)(
    '200: %s is of one moment, whatever is written while someone reads it slowly (USER-1)',
    async (path) => {
      const response = await openList(app, admin, path);
      expect(isTimeHeld(app)).toBe(true);
      const email = `meanwhile${path.length}@example.com`;
      const { body: added } = await admin.post('/users', { fullName: 'Meanwhile', email });
      const last = `long${1_000 + total}@example.com`;
      const gone = async (is_deleted: 0 | 1) => {
        const { db } = app.services;
        await db.transaction((tx) => tx.updateTable('users').set({ is_deleted }).where('email', '=', last).execute());
      };
      await gone(1);
      const seen: Json[] = JSON.parse(await textOfStream(response));
      expect([seen.length, seen.at(-1).email]).toEqual([total, last]);
      const now = (await admin.get('/users?limit=1&sortBy=createdAt&sortOrder=desc')).body;
      expect([now.pagination.totalCount, now.users[0].email]).toEqual([total, email]);
      await gone(0);
      await app.deleteUser(added._id);
      expect(await released(app)).toBe(true);
    },
  );

  it('nothing is held when someone hangs up in the middle', async () => {
    for (let count = 0; count < atOnceMax + 4; count += 1) {
      const response = await openList(app, admin, lists[count % 2]);
      expect(isTimeHeld(app)).toBe(true);
      response.destroy();
      expect(await released(app)).toBe(true);
    }
    expect((await admin.get('/users?limit=1')).status).toBe(200);
    // A client that leaves is no fault of ours.
    expect(linesOf(/broke off/)).toEqual([]);
  });

  it('nothing is held when someone hangs up before anything was sent', async () => {
    for (let count = 0; count < 3 * atOnceMax; count += 1) {
      const headers = ['Host: x', `Authorization: Bearer ${admin.credential}`];
      const caller = new RawConnection(app).send(requestText(`GET /api/v1${lists[count % 2]} HTTP/1.1`, headers));
      // At a different step of the answer each time.
      for (let turn = 0; turn <= count % 5; turn += 1) await setImmediate();
      caller.socket.resetAndDestroy();
      await once(caller.socket, 'close');
    }
    expect(await released(app)).toBe(true);
    const response = await openList(app, admin);
    expect(response.statusCode).toBe(200);
    response.destroy();
    expect(await released(app)).toBe(true);
  });

  /** As many lists as there may be of each of them, under way. */
  async function openAll(clients: readonly Client[]): Promise<IncomingMessage[]> {
    const open: IncomingMessage[] = [];
    for (const client of clients) {
      for (let count = 0; count < ofOneMax; count += 1) open.push(await openList(app, client, lists[count % 2]));
    }
    expect(open.map(({ statusCode }) => statusCode)).toEqual(open.map(() => 200));
    return open;
  }

  /** No list begins for them, and whatever is short is answered. */
  async function expectOnlyShort(client: Client, refused: 429 | 503): Promise<void> {
    for (const path of lists) {
      const { status, body, headers } = await client.get(path);
      const code = refused === 429 ? 'RATE_LIMITED' : 'UNAVAILABLE';
      expect([status, body.error.code, headers.get('retry-after')]).toEqual([refused, code, '5']);
    }
    expect((await client.get('/users?limit=5')).status).toBe(200);
    expect((await client.post('/users/by-ids', { userIds: [admin.userId] })).status).toBe(200);
  }

  async function expectAllEnd(open: readonly IncomingMessage[]): Promise<void> {
    for (const response of open) response.destroy();
    expect(await released(app)).toBe(true);
    expect(linesOf(/broke off/)).toEqual([]);
  }

  it('429: a fifth list of one person, by session or token, and none of what others ask for (ERR-24, HTTP-33)', async () => {
    const open = await openAll([admin]);
    await expectOnlyShort(admin, 429);
    await expectOnlyShort(await admin.token(), 429);
    open.push(...(await openAll([members[0] ?? admin])));
    expect(open).toHaveLength(2 * ofOneMax);
    open[1]?.destroy();
    open.push(await openWhenAdmitted(admin));
    await expectOnlyShort(admin, 429);
    await expectAllEnd(open);
  });

  /** As if a test took no time: no list stalls. */
  async function inStillTime(work: () => Promise<void>): Promise<void> {
    vi.useFakeTimers({ toFake: ['performance'] });
    try {
      await work();
      expect(await released(app)).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  }

  it('503: one list more than there may be at once, anyone who asks, and none of the short ones (ERR-27)', () =>
    inStillTime(async () => {
      const [late = admin, ...others] = members;
      const open = await openAll([admin, ...others].slice(0, atOnceMax / ofOneMax));
      expect(open).toHaveLength(atOnceMax);
      await expectOnlyShort(late, 503);
      open[5]?.destroy();
      open.push(await openWhenAdmitted(late));
      await expectOnlyShort(late, 503);
      await expectAllEnd(open);
    }));

  it('200: a list of someone who finds all places taken by lists that nobody reads; one of those breaks off (HTTP-41)', () =>
    inStillTime(async () => {
      const [late = admin, ...others] = members;
      const open = await openAll([admin, ...others].slice(0, atOnceMax / ofOneMax));
      await expectOnlyShort(late, 503);
      vi.advanceTimersByTime(5 * second);
      expect((await late.get('/users')).body).toHaveLength(total);
      const outcomes = await Promise.allSettled(open.map(textOfStream));
      const broken = outcomes.filter(({ status }) => status === 'rejected');
      expect([outcomes.length, broken.length]).toEqual([atOnceMax, 1]);
      const lines = linesOf(/broke off/);
      expect(lines.map(({ err }) => err.message)).toEqual([expect.stringContaining('lost its place')]);
      app.logLines.length = 0;
    }));

  it.each(lists)('503: %s while the store cannot be read, told in one line (STORE-12, ERR-27)', async (path) => {
    const stop = watchStatements((sql, connection) => {
      if (/from "users"/.test(sql) && !connection.inTransaction && /order by/.test(sql)) {
        throw diskError('broken');
      }
    });
    const headers = { 'x-request-id': `failing-${path.length}` };
    for (let tries = 0; tries <= atOnceMax; tries += 1) {
      const { status, body, headers: given } = await admin.get(path, { headers });
      expect([status, body.error.code, given.get('retry-after')]).toEqual([503, 'UNAVAILABLE', '5']);
    }
    stop();
    const lines = linesOf(new RegExp(`failing-${path.length}"`)).filter(({ level }) => level >= 40);
    expect(lines.map(({ msg }) => msg)).toEqual(Array.from({ length: atOnceMax + 1 }, () => 'the store failed'));
    const response = await openList(app, admin, path);
    expect(response.statusCode).toBe(200);
    response.destroy();
  });

  describe('a list that fails in the middle', () => {
    let whole: Database['batches'];
    beforeAll(() => {
      whole = app.services.db.batches;
    });
    afterEach(() => {
      Object.assign(app.services.db, { batches: whole });
    });

    it.each(lists)('%s is broken off, told in one line with the request id (ERR-6)', async (path) => {
      Object.assign(app.services.db, {
        batches: async function* (query: never, reader: string) {
          let count = 0;
          for await (const rows of whole(query, reader)) {
            if (count++ === 4) throw diskError('broken');
            yield rows;
          }
        },
      });
      const caller = new RawConnection(app);
      const id = `middle-${path.length}`;
      const headers = ['Host: x', `Authorization: Bearer ${admin.credential}`, `x-request-id: ${id}`];
      const { text, closed } = await caller.send(requestText(`GET /api/v1${path} HTTP/1.1`, headers)).closed();
      expect([text.split('\r\n')[0], closed]).toEqual(['HTTP/1.1 200 OK', true]);
      expect(text.toLowerCase()).toContain('transfer-encoding: chunked');
      expect(text.endsWith('0\r\n\r\n')).toBe(false);
      expect(text).not.toMatch(/SQLITE|injected/);
      await expect(openList(app, admin, path).then(textOfStream)).rejects.toThrow(/aborted|reset|terminated/i);
      const faults = linesOf(/"level":[56]0/).filter(({ requestId }) => requestId === id);
      expect(faults.map(({ msg }) => msg)).toEqual(['a list broke off']);
      expect(await released(app)).toBe(true);
    });
  });

  it('the service stops while lists are under way: who reads gets all, who does not is cut off (RUN-7)', async () => {
    const [reading, stalled] = [await openList(app, admin), await openList(app, admin)];
    const whole = textOfStream(reading);
    const cutOff = once(stalled, 'error');
    const stopped = app.stop();
    expect(JSON.parse(await whole)).toHaveLength(total);
    await stopped;
    stalled.resume();
    await cutOff;
    await vi.waitUntil(() => isStoreLeft(app), { timeout: 10_000 });
  });
});
