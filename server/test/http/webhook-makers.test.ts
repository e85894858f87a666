import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { day, second } from '../../src/base/clock.ts';
import { type Client, type Json, TestApp } from '../support/test-app.ts';
import { presentClock, WebhookReceiver } from '../support/webhook-receiver.ts';
import { addUser, arrived, loopback, registerWebhook, sequencesAt } from '../support/webhooks.ts';

let receiver: WebhookReceiver;
let app: TestApp;
let admin: Client;
beforeEach(async () => {
  receiver = await WebhookReceiver.start();
  app = await TestApp.start(loopback, presentClock());
  admin = await app.setUp();
});
afterEach(async () => {
  await app.close();
  await receiver.stop();
});

describe('a webhook that a personal access token made (SCOPE-26)', () => {
  /** Returns whether it exists, and gets events. */
  async function isAlive({ id }: Json): Promise<boolean> {
    const owner = await app.signIn('ada@example.com');
    const { webhooks } = (await owner.get('/webhooks')).body;
    const isListed = webhooks.some((one: Json) => one.id === id);
    const witness = await registerWebhook(owner, receiver.at('localhost'));
    receiver.messages.length = 0;
    const sequence = await addUser(app, owner);
    const expected = isListed ? 2 : 1;
    await arrived(receiver, expected);
    // A later event would be a message too many.
    await owner.post(`/webhooks/${witness.id}/test`);
    await owner.delete(`/webhooks/${witness.id}`);
    expect(sequencesAt(receiver).filter((one) => one === sequence)).toHaveLength(expected);
    return isListed;
  }

  it('ends when the token is revoked, or what made the token is', async () => {
    for (const depth of [0, 1]) {
      const root = await admin.token();
      const maker = depth === 0 ? root : await root.token();
      const webhook = await registerWebhook(maker, receiver.url);
      expect(await isAlive(webhook)).toBe(true);
      await admin.delete(`/personal-access-tokens/${root.tokenId}`);
      expect(await isAlive(webhook)).toBe(false);
    }
  });

  it('ends when the owner of the token is deleted, and stays so when that person is restored', async () => {
    const owner = await app.member(admin, 'grace@example.com');
    await app.promote(owner.userId);
    const byToken = await registerWebhook(await owner.token(), receiver.url);
    const bySession = await registerWebhook(owner, 'https://example.invalid/');
    expect(await isAlive(byToken)).toBe(true);
    await app.demote(owner.userId);
    await app.deleteUser(owner.userId);
    expect(await isAlive(byToken)).toBe(false);
    expect((await admin.get(`/webhooks/${bySession.id}`)).status).toBe(200);
    expect((await admin.post(`/users/${owner.userId}/restore`)).status).toBe(200);
    expect(await isAlive(byToken)).toBe(false);
  });

  it('ends when the token is expired, to the millisecond', async () => {
    const maker = await admin.token({ expiryDays: 30 });
    const endMs = Math.floor(app.clock.now() / second) * second + 30 * day;
    const webhook = await registerWebhook(maker, receiver.url);
    app.clock.set(endMs - 1);
    expect(await isAlive(webhook)).toBe(true);
    app.clock.set(endMs);
    expect(await isAlive(webhook)).toBe(false);
  });

  it('lives on when only the scopes of the token are narrowed', async () => {
    const webhook = await registerWebhook(await admin.token({ scopes: ['org:admin'] }), receiver.url);
    app.environment['MCP_SCOPES'] = 'org:read';
    app.services.reloadConfig();
    expect(await isAlive(webhook)).toBe(true);
  });
});
