import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { commitEvents } from '../support/committed-events.ts';
import { addEvents, EventReader } from '../support/event-reader.ts';
import { secondConnection } from '../support/second-connection.ts';
import { actAhead } from '../support/statement-watch.ts';
import type { StoreConnection } from '../support/store-connection.ts';
import { type Client, type Json, TestApp } from '../support/test-app.ts';

const users = 8;
/** orgCreated and the first userAdded come before. */
const before = users + 2;
const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, place) => first + place);
const since = (id: string) => ({ 'last-event-id': id });

let app: TestApp;
let admin: Client;
const readers: EventReader[] = [];

async function open(
  client: Client,
  ...asked: Parameters<typeof EventReader.open> extends [unknown, unknown, ...infer R] ? R : never
) {
  const reader = await EventReader.open(app, client, ...asked);
  readers.push(reader);
  return reader;
}

async function leaveAll(): Promise<void> {
  await Promise.all(readers.splice(0).map((reader) => reader.leave()));
}

describe('GET /events: server-sent events', () => {
  /** Hears of nothing after its beginning. */
  let quiet: TestApp;
  let listener: EventReader;

  beforeAll(async () => {
    quiet = await TestApp.start();
    listener = await EventReader.open(quiet, await quiet.setUp());
    app = await TestApp.start();
    admin = await app.setUp();
    await addEvents(admin, users);
  });
  afterEach(leaveAll);
  afterAll(async () => {
    await app.close();
    await listener.leave();
    await quiet.close();
  });

  const newest = async () => (await app.events()).at(-1).sequence;

  it('200: each event is its sequence, its type and the envelope in one line (EVENT-1, EVENT-13)', async () => {
    const reader = await open(admin);
    await reader.take(before);
    const { events } = (await admin.get('/events')).body;
    const frames = events.map(
      (event: Json) => `id: ${event.sequence}\nevent: ${event.eventType}\ndata: ${JSON.stringify(event)}\n\n`,
    );
    expect(reader.text).toBe(`retry: 3000\n\n${frames.join('')}`);
    expect(reader.status).toBe(200);
    expect(Object.fromEntries(reader.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
    });
  });

  it('200: its head and its first line come at once, also where there is nothing to tell (EVENT-13)', async () => {
    const reader = await open(admin, { headers: since(String(await newest())) });
    await vi.waitUntil(() => reader.text !== '');
    expect([reader.text, reader.retryMs]).toEqual(['retry: 3000\n\n', 3_000]);
  });

  it('200: events come as they happen, to everyone who reads, in order (EVENT-9, EVENT-13)', async () => {
    const last = await newest();
    const all = [await open(admin), await open(app.service(['EVENTS_READ'])), await open(await admin.token())];
    await addEvents(admin, 5, 'live');
    for (const reader of all) {
      await reader.take(last + 5);
      expect(reader.ids).toEqual(upTo(last + 5));
    }
  });

  it('200: text of every kind arrives as it is (EVENT-13)', async () => {
    const last = await newest();
    const reader = await open(admin, { headers: since(String(last)) });
    const fullName = 'Zoë “data: x” \\n id: 7 😀';
    expect((await admin.post('/users', { fullName, email: 'text@example.com' })).status).toBe(201);
    const [event] = await reader.take(1);
    expect(event).toMatchObject({ id: String(last + 1), event: 'userAdded', data: { payload: { fullName } } });
  });

  it('200: what another process commits comes too (EVENT-13)', async () => {
    const last = await newest();
    const reader = await open(admin, { headers: since(String(last)) });
    const store = secondConnection(app);
    store.exec("UPDATE counters SET value = value + 1 WHERE name = 'event'");
    store
      .prepare(
        `INSERT INTO outbox SELECT ${last + 1}, '${'f'.repeat(24)}', org_id, event_type, occurred_at, payload FROM outbox WHERE sequence = 1`,
      )
      .run();
    store.close();
    await reader.take(1);
    expect(reader.ids).toEqual([last + 1]);
  });

  describe('where it begins (EVENT-13)', () => {
    it.each([
      ['nothing is said', {}, 1],
      ['`after` alone', { query: '?after=4' }, 5],
      ['Last-Event-ID alone', { headers: since('6') }, 7],
      ['Last-Event-ID comes before `after`', { query: '?after=2', headers: since('6') }, 7],
      ['an earlier Last-Event-ID comes before `after`, too', { query: '?after=6', headers: since('0') }, 1],
      ['an empty Last-Event-ID says nothing', { query: '?after=4', headers: since('') }, 5],
      ['an empty Last-Event-ID alone', { headers: since('') }, 1],
      ['a limit is for pages', { query: '?limit=1' }, 1],
    ])('200: %s', async (_, asked, first) => {
      const last = await newest();
      const reader = await open(admin, asked);
      await reader.take(last - first + 1);
      expect(reader.ids).toEqual(upTo(last, first));
    });

    it('200: beyond the newest, it goes on with what comes next', async () => {
      const last = await newest();
      const reader = await open(admin, { headers: since('999999999999999') });
      await addEvents(admin, 1, 'beyond');
      await reader.take(1);
      expect(reader.ids).toEqual([last + 1]);
    });

    it.each(['x', '-1', '1.0', '01', '1,2', '9999999999999999', '{}'])('400: Last-Event-ID: %s', async (given) => {
      const reader = await open(admin, { headers: since(given) });
      await reader.over();
      expect([reader.status, JSON.parse(reader.text).error.details[0].field]).toEqual([400, 'headers.last-event-id']);
    });
  });

  describe('what asks for it (EVENT-13)', () => {
    it.each([
      'text/event-stream',
      'Text/Event-Stream',
      'TEXT/EVENT-STREAM',
      'text/event-stream, */*;q=0.1',
      'application/json;q=0.5, text/event-stream',
      'application/json,text/event-stream;q=0.9',
      'text/event-stream; charset=utf-8',
      'text/event-stream;q=0.001',
      'text/event-stream ; q=1',
    ])('200: a stream for Accept: %s', async (accept) => {
      const reader = await open(admin, { headers: { accept } });
      expect(reader.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    });

    it.each([
      '*/*',
      'text/*',
      'application/json',
      'text/event-stream;q=0',
      'text/event-stream; q=0.000',
      'text/event-stream;Q=0, application/json',
      'text/event-stream; charset=utf-8; q=0',
      'text/event-streams',
      'xtext/event-stream',
      'application/x;a="text/event-stream"',
      '',
    ])('200: a page for Accept: %s', async (accept) => {
      const { status, body } = await admin.get('/events', { headers: { accept } });
      expect([status, body.nextAfter]).toEqual([200, await newest()]);
    });
  });

  it('200: HEAD tells the type, and ends at once', async () => {
    const { status, headers, text } = await admin.call('HEAD', '/events', { headers: { accept: 'text/event-stream' } });
    expect([status, headers.get('content-type'), text]).toEqual([200, 'text/event-stream; charset=utf-8', '']);
  });

  it.each([
    ['401 UNAUTHORIZED', '', () => app.anonymous],
    ['401 TOKEN_INVALID', '', () => app.with('lkpat_bad')],
    ['403 INSUFFICIENT_SCOPE', '', () => app.service(['USER_LOOKUP'])],
    ['400 VALIDATION_ERROR', '?after=x', () => admin],
  ])('%s: in JSON, before anything is streamed %s (EVENT-15)', async (expected, query, client) => {
    const reader = await open(client(), { query });
    await reader.over();
    expect(reader.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(`${reader.status} ${JSON.parse(reader.text).error.code}`).toBe(expected);
  });

  it('a comment comes after 15 seconds in which nothing happened, and the stream goes on (EVENT-13)', async () => {
    await vi.waitUntil(() => listener.comments > 0, { timeout: 25_000 });
    expect(listener.text.replace(/^(id|event|data): .*\n/gm, '')).toMatch(/^retry: 3000\n\n\n\n(:\n\n)+$/);
    expect([listener.ids, listener.ended]).toEqual([[1, 2], null]);
  });
});

describe('GET /events: a stream over the life of the log', () => {
  let store: StoreConnection;

  beforeEach(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    store = secondConnection(app);
  });
  afterEach(async () => {
    await leaveAll();
    store.close();
    await app.close();
  });

  /** Adds events in one commit, as a process of its own. */
  const addMany = (count: number, sizeOfEach = 2) =>
    commitEvents(store, count, JSON.stringify({ x: 'x'.repeat(sizeOfEach) }));

  it('200: 5,000 events of one commit come, each once and in order (EVENT-9, EVENT-13)', async () => {
    const reader = await open(admin, { headers: since('2') });
    addMany(5_000);
    await vi.waitUntil(() => reader.text.includes('id: 5002\n'), { timeout: 15_000 });
    expect((await reader.take(5_000)).map(({ id }) => Number(id))).toEqual(upTo(5_002, 3));
  });

  it('200: far behind, it waits for its turn before each batch; its beginning and live ones wait for none (HTTP-42)', async () => {
    addMany(350);
    const turns: (() => void)[] = [];
    const { backfills } = app.services;
    const inTurn: typeof backfills.run = async (holder, work) => {
      await new Promise<void>((resolve) => {
        turns.push(resolve);
      });
      return backfills.run(holder, work);
    };
    Object.assign(app.services, { backfills: { run: inTurn } });
    const late = await open(admin);
    await vi.waitUntil(() => turns.length > 0 && late.text !== '');
    expect(late.text).toBe('retry: 3000\n\n');
    const live = await open(admin, { headers: since('252') });
    await live.take(100);
    addMany(1);
    await live.take(101);
    for (const batch of [1, 2]) {
      turns.shift()?.();
      await vi.waitUntil(() => turns.length > 0);
      expect(await late.take(100 * batch)).toHaveLength(100 * batch);
    }
    turns.shift()?.();
    await late.take(353);
    expect([late.ids, live.ids, turns]).toEqual([upTo(353), upTo(353, 253), []]);
  });

  it('what a client sees over many lost connections has no gap and nothing twice (EVENT-9, EVENT-13)', async () => {
    const seen: number[] = [];
    const writing = (async () => {
      for (let round = 0; round < 30; round += 1) {
        addMany(1 + (round % 7));
        await addEvents(admin, 1, `round-${round}`);
      }
      return (await app.events()).at(-1).sequence as number;
    })();
    let last = Number.POSITIVE_INFINITY;
    void writing.then((sequence) => {
      last = sequence;
    });
    for (let round = 0; (seen.at(-1) ?? 0) < last; round += 1) {
      const headers = seen.length === 0 ? {} : since(String(seen.at(-1)));
      const reader = await EventReader.open(app, admin, { headers });
      // Hangs up after another number each time, wherever in a frame that is.
      await vi.waitUntil(() => reader.events.length > round % 4 || (seen.at(-1) ?? 0) + reader.events.length >= last, {
        interval: 1,
      });
      await reader.leave();
      seen.push(...reader.ids);
    }
    await writing;
    expect(seen).toEqual(upTo(last));
  });

  it('410: what is no longer kept is told before a stream begins, in JSON (EVENT-12)', async () => {
    addMany(10);
    store.exec('DELETE FROM outbox WHERE sequence <= 5');
    for (const asked of [{ query: '?after=4' }, { headers: since('0') }, { query: '?after=7', headers: since('4') }]) {
      const reader = await open(admin, asked);
      await reader.over();
      expect(reader.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect([reader.status, JSON.parse(reader.text).oldest]).toEqual([410, 6]);
    }
    const reader = await open(admin);
    await reader.take(7);
    expect(reader.ids).toEqual(upTo(12, 6));
  });

  it('a stream ends rather than pass over what is removed before it got there (EVENT-12, EVENT-20)', async () => {
    addMany(300);
    // After the first hundred, ahead of the reading of those that follow.
    const stop = actAhead(/from "outbox" where "sequence" > /, 2, () =>
      store.exec('DELETE FROM outbox WHERE sequence <= 150'),
    );
    const reader = await open(admin);
    expect([await reader.over(), stop()]).toEqual(['orderly', true]);
    expect(reader.ids).toEqual(upTo(100));
    const again = await open(admin, { headers: since('100') });
    await again.over();
    expect(again.status).toBe(410);
  });

  it('what is written between two statements of a stream is not passed over (EVENT-9)', async () => {
    for (let number = 1; number <= 4; number += 1) {
      const last = (await app.events()).at(-1).sequence;
      const stop = actAhead(/"(counters|outbox)"/, number, () => addMany(1));
      const reader = await open(admin, { headers: since(String(last)) });
      await vi.waitUntil(() => reader.events.length > 0, { timeout: 5_000 });
      expect([stop(), reader.ids]).toEqual([true, [last + 1]]);
      await reader.leave();
    }
  });

  it('a stream that has come to the end goes on, whatever is removed of what it has told (EVENT-20)', async () => {
    addMany(10);
    const reader = await open(admin);
    await reader.take(12);
    store.exec('DELETE FROM outbox');
    await addEvents(admin, 2);
    await reader.take(14);
    expect([reader.ids, reader.ended]).toEqual([upTo(14), null]);
  });

  it('a store that fails breaks a stream off and is logged; the next one goes on from there (EVENT-13)', async () => {
    const reader = await open(admin);
    await reader.take(2);
    store.exec('ALTER TABLE outbox RENAME TO elsewhere');
    store.exec("UPDATE counters SET value = value + 1 WHERE name = 'event'");
    expect(await reader.over()).toBe('broken');
    expect(app.logLines.some((line) => JSON.parse(line).msg === 'a stream broke off')).toBe(true);
    store.exec('ALTER TABLE elsewhere RENAME TO outbox');
    store.exec("UPDATE counters SET value = value - 1 WHERE name = 'event'");
    await addEvents(admin, 1);
    const next = await open(admin, { headers: since('2') });
    expect((await next.take(1)).map(({ id }) => id)).toEqual(['3']);
  });
});
