import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { secondConnection } from '../../../test/support/second-connection.ts';
import { type Client, TestApp } from '../../../test/support/test-app.ts';
import { day, hour, minute } from '../../base/clock.ts';
import { createRawLinkToken, type LinkPurpose, linkAddress, linkHash, type StoredLink, validateLink } from './link.ts';
import { endLinks, issueLinks, pruneLinks } from './public.ts';

describe('the secret of a link', () => {
  it('is 256 random bits after a mark, and shown by nothing but its address (LINK-1)', () => {
    const secrets = Array.from({ length: 100 }, () => createRawLinkToken());
    const values = secrets.map((secret) => secret.expose());
    expect(new Set(values).size).toBe(100);
    for (const value of values) {
      expect(value).toMatch(/^lkl_[\w-]{43}$/);
      expect(Buffer.from(value.slice(4), 'base64url')).toHaveLength(32);
    }
    const secret = createRawLinkToken();
    expect(`${String(secret)} ${JSON.stringify({ secret })}`).not.toContain('lkl_');
    const address = linkAddress('https://id.example.com', secret);
    expect(`${String(address)} ${JSON.stringify({ address })}`).not.toContain('lkl_');
    expect(address.expose()).toBe(`https://id.example.com/reset-password#token=${secret.expose()}`);
    expect(linkAddress('https://id.example.com', null).expose()).toBe('https://id.example.com/sign-in');
    expect(linkHash(secret)).toMatch(/^[\w-]{43}$/);
  });
});

describe('what a link is still valid for', () => {
  const link: StoredLink = {
    id: 'i',
    orgId: 'o',
    userId: 'u',
    purpose: 'reset',
    expiresAt: 1_000,
    endedAt: null,
    isOwnerGone: false,
    isMakerGone: false,
    needsPassword: false,
    email: null,
  };
  const kept = 30 * day;
  it.each([
    ['none at all', undefined, 0, 'unknown'],
    ['before its end', {}, 999, 'good'],
    ['at its end', {}, 1_000, 'gone'],
    ['30 days after, less a millisecond', {}, 1_000 + kept - 1, 'gone'],
    ['30 days after', {}, 1_000 + kept, 'unknown'],
    ['used', { endedAt: 500 }, 500, 'gone'],
    ['used, with a clock that was set back (LINK-2)', { endedAt: 500 }, 499, 'gone'],
    ['30 days after it was used', { endedAt: 500 }, 500 + kept, 'unknown'],
    ['ended after its time was over', { endedAt: 2_000 }, 1_000 + kept, 'unknown'],
    ['without an end', { expiresAt: null }, Number.MAX_SAFE_INTEGER, 'good'],
    ['without an end, and ended', { expiresAt: null, endedAt: 500 }, 500, 'gone'],
    ['of somebody who is gone', { isOwnerGone: true }, 0, 'unknown'],
    ['shown to an administrator of before (LEAVER-9)', { isMakerGone: true }, 0, 'gone'],
    ['used, of somebody who is gone', { isOwnerGone: true, endedAt: 500 }, 600, 'unknown'],
  ] as const)('%s (LINK-3, PASSWORD-12)', (...[, given, nowMs, verdict]) => {
    expect(validateLink(given && { ...link, ...given }, nowMs)).toBe(verdict);
  });
});

describe('pruneLinks', () => {
  let app: TestApp;
  let admin: Client;
  let orgId: string;
  let startMs: number;
  let count = 0;

  async function start(): Promise<void> {
    app = await TestApp.start();
    admin = await app.setUp();
    orgId = (await admin.get('/org')).body._id;
    startMs = app.clock.now();
  }
  beforeEach(start);
  afterEach(() => app.close());

  async function someUser(): Promise<string> {
    count += 1;
    const { body } = await admin.post('/users', { fullName: 'Some Body', email: `some-${count}@example.com` });
    return body._id;
  }
  async function issue(userId: string, purpose: LinkPurpose, setsPassword = true): Promise<string> {
    const { services } = app;
    const issuing = {
      purpose,
      setsPassword,
      createdBy: null,
      delivery: 'sending',
      inputs: [{ orgId, userId }],
    } as const;
    const [link] = await services.db.transaction((tx) => issueLinks(tx, services, issuing));
    return link?.id ?? '';
  }
  const end = (userId: string, reason: 'owner-deleted' | 'password-changed') =>
    app.services.db.transaction((tx) => endLinks(tx, { userId, nowMs: app.clock.now(), reason }));
  async function remaining(): Promise<readonly string[]> {
    const rows = await app.services.db.read.selectFrom('one_time_links').orderBy('id').select('id').execute();
    return rows.map(({ id }) => id);
  }
  const pruneAt = (ms: number) => {
    app.clock.set(ms);
    return pruneLinks(app.services);
  };

  it('keeps reset links for 30 days after they ended, to the millisecond, however they ended (LINK-4, PASSWORD-12)', async () => {
    const [one, two] = [await someUser(), await someUser()];
    const expiring = await issue(one, 'reset');
    await issue(two, 'reset');
    app.clock.advance(1_000);
    await end(two, 'password-changed');
    const usedMs = startMs + 1_000;
    const expiredMs = startMs + 20 * minute;
    expect(await pruneAt(usedMs + 30 * day)).toBe(0);
    expect(await pruneAt(usedMs + 30 * day + 1)).toBe(1);
    expect(await remaining()).toEqual([expiring]);
    expect(await pruneAt(expiredMs + 30 * day)).toBe(0);
    expect(await pruneAt(expiredMs + 30 * day + 1)).toBe(1);
    expect(await remaining()).toEqual([]);
  });

  it('keeps the last invitation of everyone for ever, and forgets those that it replaced (LINK-4, INVITE-24)', async () => {
    const [one, two, three] = [await someUser(), await someUser(), await someUser()];
    const replaced = await issue(one, 'invitation');
    app.clock.advance(1);
    const kept = [
      await issue(one, 'invitation'),
      await issue(two, 'invitation'),
      await issue(three, 'invitation', false),
    ];
    await end(two, 'password-changed');
    expect(await pruneAt(startMs + 1 + 30 * day)).toBe(0);
    expect(await remaining()).toContain(replaced);
    expect(await pruneAt(startMs + 2 + 30 * day)).toBe(1);
    expect(await pruneAt(startMs + 40_000 * day)).toBe(0);
    expect(await remaining()).toEqual(kept.toSorted());
  });

  it('forgets what a deleted person had, a link without an end too (LINK-4)', async () => {
    const [one, two] = [await someUser(), await someUser()];
    await issue(one, 'invitation');
    await issue(two, 'invitation', false);
    await end(one, 'owner-deleted');
    await end(two, 'owner-deleted');
    expect(await pruneAt(startMs + 30 * day)).toBe(0);
    expect(await pruneAt(startMs + 30 * day + 1)).toBe(2);
  });

  it('takes what a crowd has in several steps, and nothing that still works (LINK-4)', async () => {
    const userId = await someUser();
    const open = await issue(userId, 'invitation');
    const store = secondConnection(app);
    const insert = store.prepare(
      `INSERT INTO one_time_links (id, hash, org_id, user_id, purpose, is_returning, delivery, created_at, expires_at, is_current)
       VALUES (?, ?, ?, ?, 'reset', 0, 'sending', 1, 2, 0)`,
    );
    store.transaction(() => {
      for (let place = 0; place < 1_200; place += 1) insert.run(`old-${place}`, `hash-${place}`, orgId, userId);
    })();
    store.close();
    const { db } = app.services;
    const transactions = vi.spyOn(db, 'transaction');
    expect(await pruneLinks(app.services)).toBe(1_200);
    expect(transactions).toHaveBeenCalledTimes(3);
    transactions.mockRestore();
    expect(await remaining()).toEqual([open]);
    expect(await pruneLinks(app.services)).toBe(0);
  });

  it('happens by itself every hour (LINK-4)', async () => {
    await app.close();
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      await start();
      await issue(await someUser(), 'reset');
      app.clock.advance(20 * minute + 30 * day + 1);
      await vi.advanceTimersByTimeAsync(hour);
      await expect.poll(remaining, { timeout: 15_000, interval: 10 }).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
  });
});
