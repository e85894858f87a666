import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { watchStatements } from '../support/statement-watch.ts';
import { type Client, TestApp } from '../support/test-app.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';
import { arrived, loopback, registerWebhook } from '../support/webhooks.ts';

const webhooks = 12;

describe('subscriptions with nothing to do (EVENT-22)', () => {
  let app: TestApp;
  let admin: Client;
  let receiver: WebhookReceiver;
  beforeEach(async () => {
    app = await TestApp.start(loopback);
    admin = await app.setUp();
    receiver = await WebhookReceiver.start();
  });
  afterEach(async () => {
    await app.close();
    await receiver.stop();
  });

  it('ask nothing each for itself when someone commits something else, and all send what there is to send', async () => {
    for (let made = 0; made < webhooks; made += 1) await registerWebhook(admin, receiver.url);
    const { status } = await admin.post('/users', { fullName: 'Ann', email: 'ann@example.com' });
    expect(status).toBe(201);
    await arrived(receiver, webhooks);
    const settled = () => app.services.db.read.selectFrom('relays').where('attempts', '=', 0).selectAll().execute();
    const last = (await app.events()).at(-1).sequence;
    await vi.waitUntil(async () => (await settled()).filter(({ position }) => position === last).length === webhooks);

    let [each, all] = [0, 0];
    const stop = watchStatements((sql) => {
      if (/from "relays" where "name" = /.test(sql)) each += 1;
      if (/from "relays" order by "name"/.test(sql)) all += 1;
    });
    // What they did last is a commit too, after which each may look once more.
    await vi.waitUntil(async () => {
      const before = each;
      const looked = all;
      await admin.token();
      await vi.waitUntil(() => all > looked);
      return each === before;
    });
    const before = each;
    for (let commits = 0; commits < 3; commits += 1) {
      const looked = all;
      await admin.token();
      await vi.waitUntil(() => all > looked);
    }
    expect(each).toBe(before);
    stop();

    expect((await admin.post('/users', { fullName: 'Bob', email: 'bob@example.com' })).status).toBe(201);
    await arrived(receiver, 2 * webhooks);
  });
});
