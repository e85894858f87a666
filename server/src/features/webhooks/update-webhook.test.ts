import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';
import { loopback, registerWebhook } from '../../../test/support/webhooks.ts';
import { toTimestamp } from '../../base/clock.ts';
import { switchOff } from './public.ts';

const url = 'https://example.invalid/';
let app: TestApp;
let admin: Client;

beforeAll(async () => {
  app = await TestApp.start(loopback);
  admin = await app.setUp();
});
afterAll(() => app.close());

const failing = { attempts: 4, failing_since: 5, next_try_at: 6, last_error: 'answered 500' };
const well = { attempts: 0, failing_since: null, next_try_at: null, last_error: null };
const ofRelay = (id: string) =>
  app.services.db.read.selectFrom('relays').where('name', '=', `entity-events/webhook/${id}`);
const relayOf = (id: string) => ofRelay(id).selectAll().executeTakeFirstOrThrow();

/** As after some failures. Webhooks of these tests never get an event. */
async function fail(id: string): Promise<void> {
  const name = `entity-events/webhook/${id}`;
  await app.services.db.transaction((tx) => tx.updateTable('relays').set(failing).where('name', '=', name).execute());
}
const change = (id: string, body: Json, client = admin) => client.patch(`/webhooks/${id}`, body);

describe('PATCH /webhooks/:webhookId', () => {
  it('200: changes what is given and nothing else (EVENT-18)', async () => {
    const { secret: _, ...made } = await registerWebhook(admin, url, { description: 'old', events: ['userAdded'] });
    app.clock.advance(1_000);
    const updatedAt = toTimestamp(app.clock.now());
    const changes: Json[] = [
      { description: 'new' },
      { events: ['orgUpdated', 'userAdded'] },
      { url: 'https://example.com/other' },
      { description: '' },
      { events: null },
    ];
    let expected: Json = made;
    for (const body of changes) {
      expected = { ...expected, ...body, updatedAt, ...(body.description === '' ? { description: null } : {}) };
      const response = await change(made.id, body);
      expect([response.status, response.body]).toEqual([200, expected]);
      expect((await admin.get(`/webhooks/${made.id}`)).body).toEqual(expected);
    }
  });

  it('200: what changes nothing is no act: no record, no other date (AUDIT-9)', async () => {
    const { secret: _, ...made } = await registerWebhook(admin, url, { events: ['userAdded'] });
    const before = (await app.audit()).length;
    app.clock.advance(1_000);
    for (const body of [{}, { enabled: true }, { url, description: null, events: ['userAdded'] }]) {
      expect((await change(made.id, body)).body).toEqual(made);
    }
    expect((await app.audit()).length).toBe(before);
  });

  it('200: switches off and on; what failed before is forgotten, and the position stays (EVENT-26)', async () => {
    const { id } = await registerWebhook(admin, url, { after: 1 });
    await change(id, { enabled: false });
    const { body: off } = await change(id, { enabled: false });
    expect(off).toMatchObject({ state: 'off', offReason: 'administrator', offAt: toTimestamp(app.clock.now()) });
    await fail(id);
    const { body: on } = await change(id, { enabled: true });
    expect(on).toMatchObject({ state: 'on', offReason: null, offAt: null });
    expect(await relayOf(id)).toMatchObject({ ...well, position: 1 });
  });

  it.each(['gone', 'failing'] as const)(
    '200: switches one on again that was switched off because it was %s, and an administrator’s "off" takes nothing from that (EVENT-26)',
    async (kind) => {
      const { id } = await registerWebhook(admin, url);
      await switchOff(app.services, id, { kind, reason: 'answered 500' });
      await fail(id);
      expect((await change(id, { description: 'x' })).body).toMatchObject({ state: 'off', offReason: kind });
      expect((await change(id, { enabled: false })).body).toMatchObject({ state: 'off', offReason: kind });
      expect(await relayOf(id)).toMatchObject(failing);
      expect((await change(id, { enabled: true })).body).toMatchObject({ state: 'on', offReason: null });
      expect(await relayOf(id)).toMatchObject(well);
    },
  );

  it('200: another address is tried at once, and has a day of its own; other changes leave the pauses alone (EVENT-26)', async () => {
    const { id } = await registerWebhook(admin, url);
    await change(id, { enabled: false });
    await fail(id);
    await change(id, { description: 'x', events: ['userAdded'], url });
    expect(await relayOf(id)).toMatchObject(failing);
    await change(id, { url: 'https://example.com/other' });
    expect(await relayOf(id)).toMatchObject(well);
  });

  it('the audit log tells what was changed, and of the address no more than whose it is (AUDIT-8, AUDIT-9)', async () => {
    const { id } = await registerWebhook(admin, url);
    await change(id, { url: 'https://other.example/secret-path', events: ['userAdded'], enabled: false });
    const row = (await app.audit()).at(-1);
    expect(row).toMatchObject({ action: 'webhook.updated', subject_id: id, actor_user_id: admin.userId });
    expect(row.changes).toEqual({
      origin: { before: 'https://example.invalid', after: 'https://other.example' },
      url: { before: '[secret]', after: '[secret]' },
      events: { before: null, after: ['userAdded'] },
      state: { before: 'on', after: 'off' },
    });
  });

  it.each([
    ['an address that may not be', { url: 'https://10.0.0.1/' }],
    ['no address', { url: null }],
    ['an address with a password', { url: 'https://a:b@example.com/' }],
    ['no types of event', { events: [] }],
    ['a state in words', { enabled: 'true' }],
  ])('400: %s, and nothing changes (EVENT-24)', async (_, body) => {
    const { secret: __, ...made } = await registerWebhook(admin, url);
    expect((await change(made.id, { description: 'x', ...body })).status).toBe(400);
    expect((await admin.get(`/webhooks/${made.id}`)).body).toEqual(made);
    await admin.delete(`/webhooks/${made.id}`);
  });

  it('403: a token gives no other address to a webhook that would outlive it; its own it does (SCOPE-26)', async () => {
    const [maker, other] = [await admin.token({ scopes: ['org:admin'] }), await admin.token({ scopes: ['org:admin'] })];
    const made = { bySession: await registerWebhook(admin, url), byToken: await registerWebhook(maker, url) };
    const moved = { url: 'https://thief.example/' };
    const text = 'The address and the secret of this webhook are changed in a session, or by the token that created it';
    for (const [client, { id }] of [
      [maker, made.bySession],
      [other, made.bySession],
      [other, made.byToken],
    ] as const) {
      const { status, body } = await change(id, { description: 'x', ...moved }, client);
      expect([status, body.message]).toEqual([403, text]);
      expect((await admin.get(`/webhooks/${id}`)).body).toMatchObject({ url, description: null });
      // Everything else it may change, the same address included.
      expect((await change(id, { description: 'x', url, enabled: false }, client)).status).toBe(200);
      await change(id, { description: null, enabled: true });
    }
    expect((await change(made.byToken.id, moved, maker)).body).toMatchObject({
      ...moved,
      createdByToken: maker.tokenId,
    });
    expect((await change(made.byToken.id, { url })).body).toMatchObject({ url, createdByToken: maker.tokenId });
  });

  it('403, 404: for members; for what is no webhook', async () => {
    const member = await app.member(admin, 'grace@example.com');
    const { id } = await registerWebhook(admin, url);
    expect((await change(id, { enabled: false }, member)).status).toBe(403);
    expect((await change('f'.repeat(24), { enabled: false })).status).toBe(404);
  });
});
