import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storedRows } from '../../../test/support/second-connection.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';
import { presentClock, verified, WebhookReceiver } from '../../../test/support/webhook-receiver.ts';
import { loopback, registerWebhook } from '../../../test/support/webhooks.ts';
import { toTimestamp } from '../../base/clock.ts';

const dayMs = 86_400_000;
let receiver: WebhookReceiver;
let app: TestApp;
let admin: Client;
beforeAll(async () => {
  receiver = await WebhookReceiver.start();
  app = await TestApp.start(loopback, presentClock());
  admin = await app.setUp();
});
afterAll(async () => {
  await app.close();
  await receiver.stop();
});

const rotate = (id: string, client = admin) => client.post(`/webhooks/${id}/rotate-secret`);

/** Returns those of some secrets that a test message is signed with. */
async function signedWith(id: string, secrets: readonly string[]): Promise<boolean[]> {
  receiver.messages.length = 0;
  await admin.post(`/webhooks/${id}/test`);
  const [message] = receiver.messages;
  if (!message) throw new Error('no message came');
  const count = String(message.headers['webhook-signature']).split(' ').length;
  const isGood = secrets.map((secret) => {
    try {
      return Boolean(verified(secret, message));
    } catch {
      return false;
    }
  });
  expect(isGood.filter(Boolean)).toHaveLength(count);
  return isGood;
}

describe('POST /webhooks/:webhookId/rotate-secret', () => {
  it('200: a new secret, shown once; messages are signed with both for 24 hours, to the millisecond (EVENT-25)', async () => {
    const own = await TestApp.start(loopback, presentClock());
    const owner = await own.setUp();
    const { id, secret: first } = await registerWebhook(owner, receiver.url);
    const { status, body, headers } = await owner.post(`/webhooks/${id}/rotate-secret`);
    const until = toTimestamp(own.clock.now() + dayMs);
    expect([status, body]).toEqual([
      200,
      { secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/), earlierSecretUntil: until },
    ]);
    expect(body.secret).not.toBe(first);
    expect(headers.get('cache-control')).toBe('no-store');
    const shown = async () => (await owner.get(`/webhooks/${id}`)).body;
    expect(await shown()).toMatchObject({ earlierSecretUntil: until });
    own.clock.advance(dayMs - 1);
    const again = await own.signIn('ada@example.com');
    expect((await again.get(`/webhooks/${id}`)).body.earlierSecretUntil).toBe(until);
    expect((await again.post(`/webhooks/${id}/test`)).body.isDelivered).toBe(true);
    expect(String(receiver.messages.at(-1)?.headers['webhook-signature']).split(' ')).toHaveLength(2);
    own.clock.advance(1);
    expect((await again.get(`/webhooks/${id}`)).body.earlierSecretUntil).toBeNull();
    await again.post(`/webhooks/${id}/test`);
    expect(String(receiver.messages.at(-1)?.headers['webhook-signature']).split(' ')).toHaveLength(1);
    await own.close();
  });

  it('messages verify with each of the two secrets, and with no other (EVENT-25)', async () => {
    const { id, secret: first } = await registerWebhook(admin, receiver.url);
    expect(await signedWith(id, [first])).toEqual([true]);
    const { secret: second } = (await rotate(id)).body;
    expect(await signedWith(id, [first, second])).toEqual([true, true]);
    const { secret: third } = (await rotate(id)).body;
    expect(await signedWith(id, [first, second, third])).toEqual([false, true, true]);
  });

  it('the secrets are stored encrypted, and the audit log says who made a new one (EVENT-25, AUDIT-9)', async () => {
    const { id, secret: first } = await registerWebhook(admin, receiver.url);
    const { secret: second } = (await rotate(id)).body;
    const row = storedRows(app)['webhooks']?.find((one: Json) => one.id === id);
    for (const secret of [first, second]) expect(JSON.stringify(row)).not.toContain(secret);
    const record = (await app.audit()).at(-1);
    expect(record).toMatchObject({
      action: 'webhook.secret-rotated',
      subject_id: id,
      actor_user_id: admin.userId,
    });
  });

  it('403: a token takes no hold of a webhook that would outlive it (SCOPE-26)', async () => {
    const [maker, other] = [await admin.token(), await admin.token()];
    const { id } = await registerWebhook(maker, receiver.url);
    const bySession = await registerWebhook(admin, receiver.url);
    for (const [client, webhook] of [
      [other, id],
      [maker, bySession.id],
    ] as const) {
      expect((await rotate(webhook, client)).status).toBe(403);
    }
    expect(await signedWith(bySession.id, [bySession.secret])).toEqual([true]);
    expect((await rotate(id, maker)).status).toBe(200);
    expect((await rotate(id)).status).toBe(200);
  });

  it('403: for members (SCOPE-17)', async () => {
    const { id } = await registerWebhook(admin, receiver.url);
    const member = await app.member(admin, 'grace@example.com');
    expect((await rotate(id, member)).status).toBe(403);
  });
});
