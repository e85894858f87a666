import { vi } from 'vitest';
import type { Client, Json, TestApp } from './test-app.ts';
import type { WebhookReceiver } from './webhook-receiver.ts';

/** With this, webhooks may go to receivers on loopback. */
export const loopback = { OUTBOUND_NETWORKS: '127.0.0.0/8,::1' };

/** Registers a webhook and answers it, secret included. */
export async function registerWebhook(admin: Client, url: string, more: Json = {}): Promise<Json> {
  const { status, body, text } = await admin.post('/webhooks', { url, ...more });
  if (status !== 201) throw new Error(`no webhook: ${status} ${text}`);
  return body;
}

let count = 0;

/** Makes something happen, and answers the event's sequence. */
export async function addUser(app: TestApp, client: Client): Promise<number> {
  count += 1;
  const { status, text } = await client.post('/users', { fullName: 'Ann', email: `ann-${count}@example.com` });
  if (status !== 201) throw new Error(`no user: ${status} ${text}`);
  return (await app.events()).at(-1).sequence;
}

/** The sequences of what a receiver has got, in their order. */
export function sequencesAt(receiver: WebhookReceiver): number[] {
  return receiver.messages.map(({ body }) => body.sequence);
}

/** Waits until a receiver has got a number of messages. */
export async function arrived(receiver: WebhookReceiver, number: number): Promise<void> {
  await vi.waitUntil(() => receiver.messages.length === number, { timeout: 5_000 });
}

/** Returns the stored position of a webhook; `undefined` for an unknown one. */
export async function relayOf(app: TestApp, id: string): Promise<Json> {
  const name = `entity-events/webhook/${id}`;
  return app.services.db.read.selectFrom('relays').where('name', '=', name).selectAll().executeTakeFirst();
}

/** Waits until a number of attempts in a row have failed. */
export async function failed(app: TestApp, id: string, attempts: number): Promise<void> {
  await vi.waitUntil(async () => (await relayOf(app, id))?.attempts === attempts, { timeout: 5_000 });
}
