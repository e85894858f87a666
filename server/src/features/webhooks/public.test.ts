import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { storedRows } from '../../../test/support/second-connection.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';
import { presentClock, WebhookReceiver } from '../../../test/support/webhook-receiver.ts';
import { loopback, registerWebhook } from '../../../test/support/webhooks.ts';
import { day, toTimestamp } from '../../base/clock.ts';
import { listWebhookRelays, pruneAttempts, pruneWebhooks, switchOff } from './public.ts';

const url = 'https://example.invalid/';
let app: TestApp;
let admin: Client;
beforeEach(async () => {
  app = await TestApp.start({ ...loopback, EVENT_RETENTION_DAYS: '7' }, presentClock());
  admin = await app.setUp();
});
afterEach(() => app.close());

const ids = async () => (await listWebhookRelays(app.services)).map(({ webhookId }) => webhookId);

describe('listWebhookRelays', () => {
  it('tells of each webhook that is on where it goes on, and what it wants (EVENT-18, EVENT-22)', async () => {
    const all = await registerWebhook(admin, url);
    const some = await registerWebhook(admin, url, { events: ['userDeleted', 'userAdded'] });
    const off = await registerWebhook(admin, url);
    await admin.patch(`/webhooks/${off.id}`, { enabled: false });
    const relays = await listWebhookRelays(app.services);
    expect(relays).toMatchObject([
      { relay: `entity-events/webhook/${all.id}`, webhookId: all.id, types: null, disableAfterMs: day },
      { webhookId: some.id, types: new Set(['userAdded', 'userDeleted']), sink: { batchMax: 1 } },
    ]);
    expect(relays).toHaveLength(2);
  });

  it('keeps the sink of a webhook, whatever changes of it, until it is off or gone', async () => {
    const { id } = await registerWebhook(admin, url);
    const sink = async () => (await listWebhookRelays(app.services))[0]?.sink;
    const first = await sink();
    await admin.patch(`/webhooks/${id}`, { url: 'https://other.invalid/', events: ['userAdded'] });
    expect(await sink()).toBe(first);
    await admin.patch(`/webhooks/${id}`, { enabled: false });
    expect(await sink()).toBeUndefined();
    await admin.patch(`/webhooks/${id}`, { enabled: true });
    expect(await sink()).not.toBe(first);
  });

  it('a sink sends nothing for a webhook that was switched off, or has ended, a moment ago (SCOPE-26)', async () => {
    const receiver = await WebhookReceiver.start();
    const maker = await admin.token();
    const last = (await app.events()).at(-1);
    const event = {
      key: last.org_id,
      envelope: {
        eventType: last.event_type,
        timestamp: last.occurred_at,
        payload: last.payload,
        id: last.id,
        sequence: last.sequence,
      },
    };
    for (const end of [
      (id: string) => admin.patch(`/webhooks/${id}`, { enabled: false }),
      (id: string) => admin.delete(`/webhooks/${id}`),
      () => admin.delete(`/personal-access-tokens/${maker.tokenId}`),
    ]) {
      const { id } = await registerWebhook(maker, receiver.url);
      const relay = (await listWebhookRelays(app.services)).find(({ webhookId }) => webhookId === id);
      expect(await relay?.sink.deliver([event])).toEqual({ delivered: 1, failure: null });
      await end(id);
      expect(await relay?.sink.deliver([event])).toEqual({
        delivered: 0,
        failure: { kind: 'unavailable', reason: 'the webhook is off, or deleted' },
      });
    }
    expect(receiver.messages).toHaveLength(3);
    await receiver.stop();
  });

  it('a webhook whose secret cannot be read is unavailable, and nothing is sent (AUDIT-6)', async () => {
    const receiver = await WebhookReceiver.start();
    const { id } = await registerWebhook(admin, receiver.url);
    await app.services.db.transaction((tx) => tx.updateTable('webhooks').set({ secret: 'x' }).execute());
    await admin.post('/users', { fullName: 'Ann', email: 'ann@example.com' });
    const [relay] = await listWebhookRelays(app.services);
    const envelope = { eventType: 'userAdded', timestamp: 0, payload: {}, id, sequence: 1 };
    expect(await relay?.sink.deliver([{ key: '', envelope }])).toEqual({
      delivered: 0,
      failure: { kind: 'unavailable', reason: 'a fault of this service: see its log' },
    });
    expect(receiver.connections).toBe(0);
    expect(app.logLines.join('\n')).toContain('cannot be read with the present key');
    await receiver.stop();
  });
});

describe('switchOff', () => {
  it.each(['gone', 'failing'] as const)(
    'notes why and when, and tells the audit log: %s (EVENT-26, AUDIT-9)',
    async (kind) => {
      const { id } = await registerWebhook(admin, url);
      await switchOff(app.services, id, { kind, reason: 'answered 410' });
      const offAt = toTimestamp(app.clock.now());
      expect((await admin.get(`/webhooks/${id}`)).body).toMatchObject({ state: 'off', offReason: kind, offAt });
      const record = (await app.audit()).at(-1);
      expect(record).toMatchObject({
        action: 'webhook.switched-off',
        actor_user_id: null,
        subject_id: id,
        details: { offReason: kind, reason: 'answered 410' },
      });
      // Once is enough.
      await switchOff(app.services, id, { kind: 'failing', reason: 'x' });
      expect((await app.audit()).at(-1)).toEqual(record);
      expect((await admin.get(`/webhooks/${id}`)).body.offReason).toBe(kind);
    },
  );

  it('leaves alone what is off by an administrator, and what is not there', async () => {
    const { id } = await registerWebhook(admin, url);
    await admin.patch(`/webhooks/${id}`, { enabled: false });
    const before = (await app.audit()).length;
    for (const one of [id, 'f'.repeat(24)]) await switchOff(app.services, one, { kind: 'gone', reason: 'x' });
    expect((await admin.get(`/webhooks/${id}`)).body.offReason).toBe('administrator');
    expect((await app.audit()).length).toBe(before);
  });
});

describe('pruneWebhooks', () => {
  it('removes those that ended with the token that made them, and no other, with all that is theirs (SCOPE-26)', async () => {
    const [maker, sibling] = [await admin.token(), await admin.token()];
    const ended = await registerWebhook(maker, url);
    const kept = [await registerWebhook(sibling, url), await registerWebhook(admin, url)].map(({ id }) => id);
    expect(await pruneWebhooks(app.services)).toBe(0);
    await admin.delete(`/personal-access-tokens/${maker.tokenId}`);
    expect(await pruneWebhooks(app.services)).toBe(1);
    const rows = storedRows(app);
    expect(rows['webhooks']?.map(({ id }: Json) => id)).toEqual(kept);
    expect(rows['relays']?.some(({ name }: Json) => name.endsWith(ended.id))).toBe(false);
    expect(await ids()).toEqual(kept);
  });
});

describe('pruneAttempts', () => {
  it('forgets attempts after EVENT_RETENTION_DAYS, and none before (EVENT-20, EVENT-27)', async () => {
    const receiver = await WebhookReceiver.start();
    const { id } = await registerWebhook(admin, receiver.url);
    await admin.post(`/webhooks/${id}/test`);
    app.clock.advance(7 * day);
    expect(await pruneAttempts(app.services)).toBe(0);
    app.clock.advance(1);
    expect(await pruneAttempts(app.services)).toBe(1);
    expect(storedRows(app)['webhook_attempts']).toEqual([]);
    await receiver.stop();
  });
});
