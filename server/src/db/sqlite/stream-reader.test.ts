import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import type { Compilable } from 'kysely';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { minute } from '../../base/clock.ts';
import { ApiError } from '../../base/errors.ts';
import { StreamReader } from './stream-reader.ts';

interface Row {
  readonly n: number;
}

const atOnceMax = 16;
const ofOneMax = 4;

function query(sql: string, parameters: readonly unknown[] = []): Compilable<Row> {
  const compiled: unknown = { sql, parameters };
  return { compile: () => compiled as ReturnType<Compilable<Row>['compile']> };
}

const everything = query('SELECT n FROM numbers ORDER BY numbers.n');
// By the column: by what the function answers, all rows would be read before the first.
const failingInTheMiddle = query('SELECT fail_at(n, 700) AS n FROM numbers ORDER BY numbers.n');
const upTo = (max: number) => query('SELECT n FROM numbers WHERE n <= ? ORDER BY n', [max]);

describe('BatchReader', () => {
  let folder: string;
  let writer: Sqlite.Database;
  let reader: StreamReader;
  let opened: Sqlite.Database[];
  let readers = 0;

  beforeEach(() => {
    // No list stalls, however long a test takes.
    vi.useFakeTimers({ toFake: ['performance'] });
    folder = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
    const file = join(folder, 'store.db');
    // Fails at once if another connection is in the way.
    writer = new Sqlite(file, { timeout: 0 });
    writer.pragma('journal_mode = WAL');
    writer.exec('CREATE TABLE numbers (n INTEGER PRIMARY KEY)');
    add(1, 1_000);
    opened = [];
    reader = new StreamReader(() => {
      const connection = new Sqlite(file, { readonly: true });
      connection.function('fail_at', (n, at) => {
        if (n === at) throw new Sqlite.SqliteError('disk I/O error', 'SQLITE_IOERR');
        return n;
      });
      opened.push(connection);
      return connection;
    });
  });
  afterEach(() => {
    vi.useRealTimers();
    reader.close();
    writer.close();
    rmSync(folder, { recursive: true });
  });

  type List = AsyncGenerator<readonly Row[]>;

  /** Returns a list that has not begun yet; each for another reader, unless one is given. */
  function listOf(wanted: Compilable<Row>, who = `reader${++readers}`): List {
    return reader.read(wanted, who);
  }

  /** Lists that are under way, each of another reader. */
  async function begun(count: number, who?: string): Promise<List[]> {
    const lists = Array.from({ length: count }, () => listOf(everything, who));
    for (const list of lists) await list.next();
    return lists;
  }

  async function end(lists: readonly List[]): Promise<void> {
    for (const list of lists) await list.return(undefined);
  }

  async function expectRefused(who?: string): Promise<void> {
    const refused = await listOf(upTo(1), who)
      .next()
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ApiError);
    // A reader of its own has used up what is its own.
    const expected =
      who === undefined ? { status: 503, errorName: 'overloaded' } : { status: 429, errorName: 'tooManyRequests' };
    expect(refused).toMatchObject({ ...expected, headers: { 'retry-after': '5' } });
  }

  function add(from: number, to: number): void {
    const insert = writer.prepare('INSERT INTO numbers VALUES (?)');
    writer.transaction(() => {
      for (let n = from; n <= to; n += 1) insert.run(n);
    })();
  }

  /** Returns whether any connection keeps a snapshot of the store open. */
  function isHeld(): boolean {
    writer.exec('UPDATE numbers SET n = n WHERE n = 1');
    const [{ busy }] = writer.pragma('wal_checkpoint(TRUNCATE)') as [{ busy: number }];
    return busy === 1;
  }

  async function sizesOf(rowBatches: AsyncIterable<readonly Row[]>): Promise<number[]> {
    const sizes: number[] = [];
    let expected = 1;
    for await (const rows of rowBatches) {
      sizes.push(rows.length);
      for (const { n } of rows) expect(n).toBe(expected++);
    }
    return sizes;
  }

  it.each([
    [0, []],
    [1, [1]],
    [199, [199]],
    [200, [200]],
    [201, [200, 1]],
    [400, [200, 200]],
    [401, [200, 200, 1]],
    [1_000, [200, 200, 200, 200, 200]],
  ])('gives %i rows in batches of %j, none of them empty', async (count, sizes) => {
    expect(await sizesOf(listOf(upTo(count)))).toEqual(sizes);
    expect(isHeld()).toBe(false);
  });

  it('sees one moment from beginning to end, whatever is written meanwhile', async () => {
    const list = listOf(everything);
    await list.next();
    expect(isHeld()).toBe(true);
    add(1_001, 1_300);
    writer.exec('DELETE FROM numbers WHERE n BETWEEN 300 AND 900');
    const rest: Row[] = [];
    for await (const rows of list) rest.push(...rows);
    expect(rest.map(({ n }) => n)).toEqual(Array.from({ length: 800 }, (_, at) => at + 201));
    expect(isHeld()).toBe(false);
    expect((await listOf(everything).next()).value).toHaveLength(200);
  });

  it('lets others have their turn between batches', async () => {
    let turns = 0;
    let isDone = false;
    const count = () => {
      turns += 1;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    await sizesOf(listOf(everything));
    isDone = true;
    expect(turns).toBeGreaterThanOrEqual(4);
  });

  it('lets go of its moment when it is stopped early', async () => {
    for await (const rows of listOf(everything)) {
      expect([rows.length, isHeld()]).toEqual([200, true]);
      break;
    }
    expect(isHeld()).toBe(false);
    const list = listOf(everything);
    await list.next();
    await list.next();
    await list.return(undefined);
    expect(isHeld()).toBe(false);
    expect(await sizesOf(listOf(upTo(300)))).toEqual([200, 100]);
    expect(opened).toHaveLength(1);
  });

  it('refuses one more than 16 at once, whoever it is for, until one of them has ended', async () => {
    const lists = await begun(atOnceMax);
    await expectRefused();
    // What was refused took nothing away.
    await expectRefused();
    await end(lists.splice(3, 1));
    expect(await sizesOf(listOf(upTo(1)))).toEqual([1]);
    lists.push(...(await begun(1)));
    await expectRefused();
    await end(lists);
    expect(isHeld()).toBe(false);
    await end(await begun(atOnceMax));
  });

  it('refuses one more than 4 of one reader, and nothing to others, until one of them has ended', async () => {
    const lists = await begun(ofOneMax, 'ada');
    await expectRefused('ada');
    await expectRefused('ada');
    const others = [...(await begun(ofOneMax, 'grace')), ...(await begun(2))];
    await expectRefused('grace');
    await end(lists.splice(1, 1));
    await expectRefused('grace');
    lists.push(...(await begun(1, 'ada')));
    await expectRefused('ada');
    await end([...lists, ...others]);
    const again = await begun(ofOneMax, 'ada');
    expect(again).toHaveLength(ofOneMax);
    await end(again);
  });

  it('a list that is stopped early or read to its end leaves its place, in all and for its reader', async () => {
    for (let tries = 0; tries < atOnceMax + 5; tries += 1) {
      await end(await begun(1, 'ada'));
      expect(await sizesOf(listOf(upTo(201), 'ada'))).toEqual([200, 1]);
    }
    // None of these was ever read.
    await end(Array.from({ length: atOnceMax + 5 }, () => listOf(everything, 'ada')));
    await end(await begun(ofOneMax, 'ada'));
  });

  describe('lists that overlap', () => {
    /** Reads them on: a list that nobody reads ends for the sake of others. */
    async function readOn(lists: readonly List[]): Promise<void> {
      for (const list of lists) expect((await list.next()).value).toHaveLength(200);
    }

    it('for more than 5 minutes keep new ones away, until all have ended', async () => {
      const first = await begun(1);
      vi.advanceTimersByTime(3 * minute);
      const second = await begun(1);
      await end(first);
      vi.advanceTimersByTime(2 * minute);
      const third = await begun(1);
      vi.advanceTimersByTime(1);
      await readOn(second);
      await expectRefused();
      await end(second);
      vi.advanceTimersByTime(minute);
      await readOn(third);
      await expectRefused();
      expect(isHeld()).toBe(true);
      await end(third);
      expect(isHeld()).toBe(false);
      // It starts over: for five minutes more, however they overlap.
      let last = await begun(1);
      for (let passed = 0; passed < 5; passed += 1) {
        vi.advanceTimersByTime(minute);
        const next = await begun(1);
        await end(last);
        last = next;
      }
      vi.advanceTimersByTime(1);
      await expectRefused();
      await end(last);
      await end(await begun(1));
    });

    it('any gap is enough, and time without lists does not count', async () => {
      for (let count = 0; count < 5; count += 1) {
        const lists = await begun(2);
        vi.advanceTimersByTime(4 * minute);
        await end(lists);
      }
      vi.advanceTimersByTime(60 * minute);
      const lists = await begun(1);
      vi.advanceTimersByTime(5 * minute);
      lists.push(...(await begun(1)));
      await end(lists);
      expect(isHeld()).toBe(false);
    });

    it('for more than 5 minutes keep no one away once nobody reads them, and release their snapshots (HTTP-41)', async () => {
      const stalled = await begun(3);
      vi.advanceTimersByTime(5 * minute + 1);
      expect(isHeld()).toBe(true);
      const next = await begun(1);
      await end(next);
      expect(isHeld()).toBe(false);
      for (const list of stalled) await expect(list.next()).rejects.toThrow('lost its place');
    });

    it('and stall give their places to others, with their snapshots (HTTP-41)', async () => {
      const stalled = await begun(atOnceMax);
      vi.advanceTimersByTime(5_000);
      const others = await begun(atOnceMax);
      await expectRefused();
      await end(others);
      expect([isHeld(), opened.filter(({ open }) => open).length]).toEqual([false, 2]);
      await end(stalled);
      await end(await begun(atOnceMax));
    });

    it('one that fails ends, too', async () => {
      const failing = listOf(failingInTheMiddle);
      await failing.next();
      vi.advanceTimersByTime(6 * minute);
      await readOn([failing]);
      await expectRefused();
      await readOn([failing]);
      await expectRefused();
      await expect(failing.next()).rejects.toThrow('disk I/O error');
      await end(await begun(1));
    });
  });

  it('keeps two connections for the next lists, and closes the others', async () => {
    const lists = await begun(6);
    expect(opened.filter(({ open }) => open)).toHaveLength(6);
    await end(lists);
    expect(opened.filter(({ open }) => open)).toHaveLength(2);
    for (let again = 0; again < 3; again += 1) await sizesOf(listOf(everything));
    expect(opened).toHaveLength(6);
  });

  it.each([
    ['cannot be prepared', query('SELECT n FROM absent')],
    ['fails at its first row', query('SELECT fail_at(n, 1) AS n FROM numbers')],
    ['fails in the middle', failingInTheMiddle],
  ])('a list that %s takes nothing away from later ones, of its reader or others', async (_, failing) => {
    for (let tries = 0; tries < atOnceMax + 5; tries += 1) {
      await expect(sizesOf(listOf(failing, 'ada'))).rejects.toThrow(/no such table|disk I\/O/);
      expect(isHeld()).toBe(false);
    }
    expect(await sizesOf(listOf(upTo(250)))).toEqual([200, 50]);
    await end(await begun(ofOneMax, 'ada'));
    await end(await begun(atOnceMax));
  });

  it('a connection that cannot be opened takes nothing away from later lists', async () => {
    let isBroken = true;
    const other = new StreamReader(() => {
      if (isBroken) throw new Sqlite.SqliteError('unable to open database file', 'SQLITE_CANTOPEN');
      return new Sqlite(join(folder, 'store.db'));
    });
    for (let tries = 0; tries < atOnceMax + 5; tries += 1) {
      await expect(other.read(everything, 'ada').next()).rejects.toThrow('unable to open');
    }
    isBroken = false;
    expect(await sizesOf(other.read(upTo(3), 'ada'))).toEqual([3]);
    other.close();
  });

  it('once closed, a list under way goes on to its end and closes its connection itself', async () => {
    const list = listOf(everything);
    await list.next();
    await sizesOf(listOf(upTo(1)));
    reader.close();
    expect(opened.map(({ open }) => open)).toEqual([true, false]);
    expect((await list.next()).value).toHaveLength(200);
    for await (const _ of list);
    expect(opened.map(({ open }) => open)).toEqual([false, false]);
  });
});
