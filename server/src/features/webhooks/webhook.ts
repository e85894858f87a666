import { z } from 'zod';
import { hour, toTimestamp } from '../../base/clock.ts';
import { Secret } from '../../base/secret.ts';
import { components, idResponse, timestamp } from '../../http/schemas.ts';
import type { EventType } from '../../outbox/envelope.ts';
import { clearableText } from '../../text/plain-text.ts';

/** Maximum number of webhooks. */
export const webhooksMax = 50;
/** For how long messages are signed with the earlier secret too. Rule: EVENT-25. */
export const earlierSecretMs = 24 * hour;
const urlMax = 2_048;

/** The types of event that a webhook may ask for. Rules: EVENT-3 to EVENT-7. */
const webhookEvents = {
  orgCreated: 'orgCreated',
  orgUpdated: 'orgUpdated',
  orgDeleted: 'orgDeleted',
  userAdded: 'userAdded',
  userUpdated: 'userUpdated',
  userDeleted: 'userDeleted',
} as const satisfies { readonly [T in EventType]: T };

/** The `eventType` of a test message, which is no event. Rule: EVENT-27. */
export const testEventType = 'webhookTest';

function parseUrl(text: string, context: z.RefinementCtx): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  const problem = url === null ? 'must be an address such as https://example.com/hook' : problemOf(url);
  if (url !== null && problem === null) return url;
  context.addIssue({ code: 'custom', message: problem ?? '' });
  return z.NEVER;
}

function problemOf({ protocol, username, password, hash, href }: URL): string | null {
  if (protocol !== 'https:' && protocol !== 'http:') return 'must begin with https://';
  if (username !== '' || password !== '') return 'must not hold a user name or password';
  if (hash !== '') return 'must not have a fragment (#)';
  return href.length > urlMax ? `must have at most ${urlMax} characters` : null;
}

/** Address of a webhook, checked as far as possible without resolving it. Rule: EVENT-24. */
export const webhookUrl = z
  .string()
  .max(urlMax, `must have at most ${urlMax} characters`)
  .transform(parseUrl)
  .meta({ type: 'string', format: 'uri', maxLength: urlMax, examples: ['https://example.com/hooks/latchkey'] });

/** Types of event that a webhook gets; `null`: all, future ones included. Rule: EVENT-18. */
export const eventFilter = z
  .array(z.enum(webhookEvents))
  .min(1)
  .transform((given) => Object.values(webhookEvents).filter((type) => given.includes(type)))
  .nullable()
  .meta({ examples: [['userAdded', 'userDeleted']] });

/** Description of a webhook; `null` and empty both mean none. */
export const webhookDescription = clearableText.meta({ examples: ['The directory of the intranet'] });

/** The sequence of an event; 0 is before the first. */
export const sequence = z
  .int()
  .min(0)
  .meta({ examples: [0] });

/** A webhook as it goes out, without its secret. Rule: EVENT-25. */
export const webhookRecord = z.object({
  id: idResponse,
  url: z.string(),
  description: z.string().nullable(),
  events: z.array(z.string()).nullable().describe('The types of event that it gets; null: all'),
  state: z.enum(['on', 'off']),
  offReason: z
    .enum(['administrator', 'gone', 'failing'])
    .nullable()
    .describe('The reason why it is off: an administrator, its response 410, or a day of failures'),
  offAt: timestamp.nullable(),
  earlierSecretUntil: timestamp.nullable().describe('Until when messages are signed with the earlier secret too'),
  createdBy: idResponse.nullable(),
  createdByToken: idResponse.nullable().describe('The personal access token that created it, and that it ends with'),
  creatorIsAdministrator: z
    .boolean()
    .nullable()
    .describe('false: the user who created it, or set its present address or secret, is no administrator any more'),
  createdAt: timestamp,
  updatedAt: timestamp,
});
components.add(webhookRecord, { id: 'Webhook' });

/** A webhook as the store has it. */
export interface StoredWebhook {
  readonly id: string;
  readonly url: string;
  readonly description: string | null;
  /** Space-separated; `null`: all. */
  readonly events: string | null;
  readonly offReason: 'administrator' | 'gone' | 'failing' | null;
  readonly offAt: number | null;
  /** Encrypted. */
  readonly secret: string;
  /** Encrypted. */
  readonly earlierSecret: string | null;
  readonly earlierSecretUntil: number | null;
  readonly orgId: string | null;
  readonly createdBy: string | null;
  readonly createdByToken: string | null;
  /** Of who made it, and who set its present address and secret; `null`: not known. */
  readonly areMakersAdministrators: 0 | 1 | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** The types of event that a webhook gets; `null`: all. */
export function eventsOf({ events }: Pick<StoredWebhook, 'events'>): string[] | null {
  return events === null ? null : events.split(' ');
}

/** Returns the encrypted secrets that messages are signed with at a time, the present one first. Rule: EVENT-25. */
export function secretsAt(
  { secret, earlierSecret, earlierSecretUntil }: StoredWebhook,
  nowMs: number,
): readonly string[] {
  const isEarlierGood = earlierSecret !== null && nowMs < (earlierSecretUntil ?? 0);
  return isEarlierGood ? [secret, earlierSecret] : [secret];
}

/** Returns the audit details of a webhook. Its whole address may be a secret. Rules: AUDIT-8, AUDIT-9. */
export function recordedOf(webhook: StoredWebhook): Readonly<Record<string, unknown>> {
  const { url, description, offReason } = webhook;
  const state = offReason === null ? 'on' : 'off';
  return { origin: new URL(url).origin, url: new Secret(url), description, events: eventsOf(webhook), state };
}

function timeOf(ms: number | null): string | null {
  return ms === null ? null : toTimestamp(ms);
}

/** A webhook as it goes out. Rules: EVENT-25, LEAVER-5. */
export function toWebhookRecord(webhook: StoredWebhook, nowMs: number): z.output<typeof webhookRecord> {
  const { id, url, description, offReason, offAt, createdBy, createdByToken, createdAt, updatedAt } = webhook;
  const isRotating = secretsAt(webhook, nowMs).length > 1;
  return {
    id,
    url,
    description,
    events: eventsOf(webhook),
    state: offReason === null ? 'on' : 'off',
    offReason,
    offAt: timeOf(offAt),
    earlierSecretUntil: isRotating ? timeOf(webhook.earlierSecretUntil) : null,
    createdBy,
    createdByToken,
    creatorIsAdministrator: webhook.areMakersAdministrators === null ? null : webhook.areMakersAdministrators === 1,
    createdAt: toTimestamp(createdAt),
    updatedAt: toTimestamp(updatedAt),
  };
}

/** An attempt as it goes out. Rule: EVENT-27. */
export const attemptRecord = z.object({
  id: idResponse,
  eventId: idResponse,
  eventType: z.string(),
  sequence: z.int().nullable().describe('null for a test message'),
  attempt: z.int().describe('Counts up from 1 for each event'),
  attemptedAt: timestamp,
  durationMs: z.int(),
  status: z.int().nullable().describe('Of the response; null without one'),
  reason: z.string().nullable().describe('Why it did not arrive; null: it did'),
});
components.add(attemptRecord, { id: 'WebhookAttempt' });

/** An attempt as the store has it. */
export interface StoredAttempt {
  readonly id: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly sequence: number | null;
  readonly attempt: number;
  readonly attemptedAt: number;
  readonly durationMs: number;
  readonly status: number | null;
  readonly reason: string | null;
}

/** An attempt as it goes out. */
export function toAttemptRecord({ attemptedAt, ...attempt }: StoredAttempt): z.output<typeof attemptRecord> {
  return { ...attempt, attemptedAt: toTimestamp(attemptedAt) };
}
