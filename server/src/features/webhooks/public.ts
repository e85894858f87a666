import type { Principal } from '../../access/principal.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { day, toTimestamp } from '../../base/clock.ts';
import { ApiError, refuseInput } from '../../base/errors.ts';
import type { Secret } from '../../base/secret.ts';
import { batchRows, removeInBatches } from '../../db/batches.ts';
import type { Reader, Tx } from '../../db/database.ts';
import { type Envelope, type EventType, entityStream, eventTypes } from '../../outbox/envelope.ts';
import { deleteRelay } from '../../outbox/relay/relay-store.ts';
import type { Sink } from '../../outbox/relay/sink.ts';
import { subscriptionName } from '../../outbox/relay/subscription.ts';
import type { WebhookAttempt, WebhookSender, WebhookTarget } from '../../outbox/webhook-delivery/webhook-sender.ts';
import { webhookSink } from '../../outbox/webhook-delivery/webhook-sink.ts';
import type { AllServices, Services } from '../../services.ts';
import { eventsOf, type StoredWebhook, secretsAt } from './webhook.ts';
import {
  deleteOldAttempts,
  deleteWebhookRow,
  insertAttempt,
  selectEndedWebhooks,
  selectWebhook,
  selectWebhooks,
  selectWebhooksOf,
  updateWebhook,
} from './webhook-store.ts';

const purpose = 'webhook-secret';
/** Time for which a failing webhook is retried before it is disabled. Rule: EVENT-26. */
const disableAfterMs = day;

/** The secret of a webhook as it is stored. Rule: EVENT-25. */
export function encryptWebhookSecret({ encryption }: Pick<Services, 'encryption'>, secret: Secret): Promise<string> {
  return encryption.encrypt(purpose, secret);
}

/** Names the position of a webhook in the event log. */
export function relayOf(webhookId: string): string {
  return subscriptionName(entityStream, `webhook/${webhookId}`);
}

/** A webhook that has not ended; throws `notFound` where there is none. Rule: SCOPE-26. */
export async function requireWebhook(
  read: Reader,
  { clock }: Pick<Services, 'clock'>,
  id: string,
): Promise<StoredWebhook> {
  const webhook = await selectWebhook(read, id, clock.now());
  if (!webhook) throw new ApiError('notFound');
  return webhook;
}

/**
 * Rejects a token that would control a webhook which outlives it: its address and secret are set in a session, or by
 * the token that the webhook ends with. Rule: SCOPE-26.
 */
export function requireMaker(caller: Principal, { createdByToken }: StoredWebhook): void {
  if (caller.kind === 'token' && caller.tokenId !== createdByToken) throw new ApiError('webhookOfOthers');
}

/** Rejects an address that no message could ever reach, as far as that is known at once. Rule: EVENT-24. */
export function requireUrl({ webhooks }: Pick<Services, 'webhooks'>, url: URL): string {
  const message = webhooks.objectionTo(url);
  if (message !== null) throw refuseInput({ field: 'body.url', message });
  return url.href;
}

/**
 * Rejects a position in the event log that nothing can be sent from. Rule: EVENT-10.
 * @param max the greatest position allowed
 */
export function requireAfter(after: number, { oldest, max }: { readonly oldest: number; readonly max: number }): void {
  const min = Math.min(oldest - 1, max);
  if (after >= min && after <= max) return;
  throw refuseInput({ field: 'body.after', message: `must be from ${min} to ${max}` });
}

/**
 * Returns the present address and secrets of a webhook; throws where its secret cannot be read with the present key.
 */
export async function targetOf(
  { encryption, clock }: Pick<Services, 'encryption' | 'clock'>,
  webhook: StoredWebhook,
): Promise<WebhookTarget> {
  const { id, url } = webhook;
  const stored = secretsAt(webhook, clock.now());
  const secrets = await Promise.all(stored.map((content) => encryption.decrypt(purpose, content)));
  const known = secrets.filter((secret) => secret !== null);
  if (known.length < stored.length) throw new Error('the secret of a webhook cannot be read with the present key');
  return { id, url, secrets: known };
}

/** Writes an attempt down. Rule: EVENT-27. */
export async function recordAttempt(
  { recordOutcome, newId }: Pick<Services, 'recordOutcome' | 'newId'>,
  webhookId: string,
  {
    event,
    attempt,
  }: {
    readonly event: Pick<Envelope, 'id' | 'eventType'> & { readonly sequence: number | null };
    readonly attempt: WebhookAttempt;
  },
): Promise<void> {
  const { atMs, durationMs, status, failure } = attempt;
  await recordOutcome('webhookCall', (tx) =>
    insertAttempt(tx, {
      id: newId(),
      webhook_id: webhookId,
      event_id: event.id,
      event_type: event.eventType,
      sequence: event.sequence,
      attempted_at: atMs,
      duration_ms: durationMs,
      status,
      reason: failure?.reason ?? null,
    }),
  );
}

/** A webhook as a subscription to events. */
export interface WebhookRelay {
  /** Names its position. */
  readonly relay: string;
  readonly webhookId: string;
  /** The types of event that it gets; `null`: all. */
  readonly types: ReadonlySet<EventType> | null;
  /** The same one as long as the webhook is there. */
  readonly sink: Sink;
  readonly disableAfterMs: number;
}

/** The sinks that are there, by webhook, for each sender. */
const sinksOf = new WeakMap<WebhookSender, Map<string, Sink>>();

function makeSink(services: Services, id: string): Sink {
  const { db, clock, webhooks, log } = services;
  return webhookSink({
    sender: webhooks,
    id,
    // Asked for each event: a change of address or secret, and the end of the token that made it, count at once.
    target: async () => {
      const webhook = await selectWebhook(db.read, id, clock.now());
      return webhook?.offReason === null ? targetOf(services, webhook) : null;
    },
    record: (event, attempt) => recordAttempt(services, id, { event, attempt }),
    form: () => ({ format: services.config.eventsFormat, source: services.config.baseUrl }),
    onFault: (error) => log.error({ err: error, webhookId: id }, 'a webhook could not be served'),
  });
}

function typesOf(webhook: StoredWebhook): ReadonlySet<EventType> | null {
  const wanted = eventsOf(webhook);
  return wanted && new Set(eventTypes.filter((type) => wanted.includes(type)));
}

/**
 * All webhooks that events are to be relayed to: those that are on and have not ended. The sinks of all others are
 * closed. Rules: EVENT-18, EVENT-22, SCOPE-26.
 */
export async function listWebhookRelays(services: Services): Promise<readonly WebhookRelay[]> {
  const { db, clock, webhooks } = services;
  const all = await selectWebhooks(db.read, clock.now());
  const on = all.filter(({ offReason }) => offReason === null);
  const sinks = sinksOf.get(webhooks) ?? new Map<string, Sink>();
  sinksOf.set(webhooks, sinks);
  const ids = new Set(on.map(({ id }) => id));
  for (const [id, sink] of sinks) {
    if (ids.has(id)) continue;
    sinks.delete(id);
    void sink.close();
  }
  return on.map((webhook) => {
    const { id } = webhook;
    const sink = sinks.get(id) ?? makeSink(services, id);
    sinks.set(id, sink);
    return { relay: relayOf(id), webhookId: id, types: typesOf(webhook), sink, disableAfterMs };
  });
}

/** Closes all connections to webhooks; messages in flight fail. */
export async function closeWebhooks({ webhooks }: Pick<Services, 'webhooks'>): Promise<void> {
  await webhooks.close();
}

/** Webhooks that some users made, or whose present address or secret they set, in order of creation. Rule: LEAVER-4. */
export async function listWebhooksOf(read: Reader, userIds: readonly string[], nowMs: number) {
  return (await selectWebhooksOf(read, userIds, nowMs)).map(({ id, url, createdAt }) => ({
    id,
    url,
    createdAt: toTimestamp(createdAt),
  }));
}

/** Switches a webhook off that is not to be sent to any more; one that is off, or has ended, stays so. Rule: EVENT-26. */
export async function switchOff(
  services: AllServices,
  id: string,
  { kind, reason }: { readonly kind: 'gone' | 'failing'; readonly reason: string },
): Promise<void> {
  const { db, clock } = services;
  await db.transaction(async (tx) => {
    const nowMs = clock.now();
    const webhook = await selectWebhook(tx, id, nowMs);
    if (webhook?.offReason !== null) return;
    await updateWebhook(tx, id, { off_reason: kind, off_at: nowMs });
    await appendAudit(tx, services, {
      action: 'webhook.switched-off',
      orgId: webhook.orgId,
      actor: null,
      subjectId: id,
      origin: { requestId: 'relay', network: 'local' },
      details: { offReason: kind, reason },
      changes: { state: { before: 'on', after: 'off' } },
    });
  });
}

/** Removes a webhook with its position and its dead letters. */
export async function removeWebhook(tx: Tx, id: string): Promise<void> {
  await deleteWebhookRow(tx, id);
  await deleteRelay(tx, relayOf(id));
}

/** Removes webhooks that ended with the token that created them; returns their number. Rule: SCOPE-26. */
export async function pruneWebhooks({ db, clock }: Pick<AllServices, 'db' | 'clock'>): Promise<number> {
  return removeInBatches(() =>
    db.transaction(async (tx) => {
      const ids = await selectEndedWebhooks(tx, clock.now(), batchRows);
      for (const id of ids) await removeWebhook(tx, id);
      return ids.length;
    }),
  );
}

/** Removes attempts after the retention of events, in batches; returns their number. Rule: EVENT-20. */
export async function pruneAttempts({ db, clock, config }: AllServices): Promise<number> {
  const beforeMs = clock.now() - config.eventRetentionDays * day;
  return removeInBatches(() => db.transaction((tx) => deleteOldAttempts(tx, beforeMs, batchRows)));
}
