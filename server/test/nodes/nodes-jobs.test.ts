import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { hour, minute, second } from '../../src/base/clock.ts';
import { claimJob } from '../../src/db/job-store.ts';
import { storeLastUsed } from '../../src/features/tokens/public.ts';
import type { Client } from '../support/test-app.ts';
import { TwoNodes } from '../support/two-nodes.ts';
import { presentClock, WebhookReceiver } from '../support/webhook-receiver.ts';
import { loopback, registerWebhook, relayOf, sequencesAt } from '../support/webhooks.ts';

const soon = { timeout: 20_000 };

describe('two nodes: what is done behind requests', () => {
  let nodes: TwoNodes;
  let admin: Client;
  let receiver: WebhookReceiver;
  beforeAll(async () => {
    receiver = await WebhookReceiver.start();
    nodes = await TwoNodes.start(loopback, presentClock());
    admin = await nodes.a.setUp();
  });
  afterAll(async () => {
    await nodes.close();
    await receiver.stop();
  });

  let users = 0;
  /** Makes an event. */
  async function addUser(client: Client): Promise<void> {
    users += 1;
    const { status, text } = await client.post('/users', { fullName: 'Ann', email: `ann-${users}@example.com` });
    if (status !== 201) throw new Error(`no user: ${status} ${text}`);
  }

  it('a job that is due is done by one of many who ask, and by another one the next time (NODE-6)', async () => {
    const ask = (nowMs: number) =>
      Promise.all(
        Array.from({ length: 16 }, (_, place) => {
          const { db } = (place % 2 === 0 ? nodes.a : nodes.b).services;
          return claimJob(db, 'a test', { nowMs, everyMs: hour });
        }),
      );
    const nowMs = nodes.a.clock.now();
    const taken = async (atMs: number) => (await ask(atMs)).filter(Boolean).length;
    expect(await taken(nowMs)).toBe(1);
    expect(await taken(nowMs + hour - 1)).toBe(0);
    // The node that took it may have died: no one has to confirm that it was done.
    expect(await taken(nowMs + hour)).toBe(1);
    // A clock that was set back blocks no one for long.
    expect(await taken(nowMs - hour)).toBe(1);
  });

  it('the last use of a token is the newest that any node saw, anyone who writes it last (PAT-31, NODE-6)', async () => {
    const token = await admin.token();
    const nowMs = nodes.a.clock.now();
    const write = (place: 0 | 1, usedAt: number) =>
      storeLastUsed(nodes.both[place].services, new Map([[token.tokenId, usedAt]]));
    await write(0, nowMs + minute);
    await write(1, nowMs);
    const stored = async () => {
      const rows = nodes.a.services.db.read.selectFrom('personal_access_tokens').where('id', '=', token.tokenId);
      return (await rows.select('last_used_at').executeTakeFirst())?.last_used_at;
    };
    expect(await stored()).toBe(nowMs + minute);
    await Promise.all([write(0, nowMs + 2 * minute), write(1, nowMs + 3 * minute), write(0, nowMs)]);
    expect(await stored()).toBe(nowMs + 3 * minute);
  });

  it('events that both nodes write go out once each, in order; another node goes on for one that stops or dies (EVENT-22, NODE-3)', async () => {
    const { a, b } = nodes;
    const { id } = await registerWebhook(admin, receiver.url);
    const atB = nodes.atB(admin);
    for (let round = 0; round < 10; round += 1) await Promise.all([admin, atB, admin, atB].map(addUser));
    const newest = async () => (await b.events()).at(-1).sequence;
    const sent = () => sequencesAt(receiver);
    const first = async () => {
      await vi.waitUntil(() => sent().length > 0, soon);
      return sent()[0] ?? 0;
    };
    const upTo = async () => {
      const last = await newest();
      await vi.waitUntil(() => sent().at(-1) === last, soon);
      const begin = await first();
      return Array.from({ length: last - begin + 1 }, (_, place) => begin + place);
    };
    expect(await upTo()).toEqual(sent());
    expect(sent().length).toBeGreaterThan(39);

    // As a node that died leaves it: another node's, until the lease ends.
    const holder = (await relayOf(b, id)).holder;
    await a.stop();
    const heldUntil = a.clock.now() + minute;
    await b.services.db.transaction((tx) =>
      tx.updateTable('relays').set({ holder: 'dead', held_until: heldUntil }).where('name', 'like', `%${id}`).execute(),
    );
    const before = sent().length;
    await addUser(atB);
    await vi.waitUntil(async () => (await relayOf(b, id)).holder === 'dead', soon);
    expect([holder === null, sent().length]).toEqual([false, before]);
    a.clock.advance(minute + second);
    expect(await upTo()).toEqual(sent());
    expect((await relayOf(b, id)).holder).not.toBe('dead');
  });
});
