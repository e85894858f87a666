import type { Reader, Tx } from '../../db/database.ts';
import { areAdministrators } from '../../db/members/membership.ts';
import type { NewRow } from '../../db/schema/tables.ts';
import type { StoredAttempt, StoredWebhook } from './webhook.ts';

/** Webhooks, those too that ended with the personal access token that made them, with that token and its owner. */
function allWebhooks(read: Reader) {
  return read
    .selectFrom('webhooks as w')
    .leftJoin('personal_access_tokens as p', 'p.id', 'w.created_by_token')
    .leftJoin('users as u', 'u.id', 'p.user_id');
}

/** Webhooks that have not ended: made in a session, or by a personal access token that has not ended either. Rule: SCOPE-26. */
function openWebhooks(read: Reader, nowMs: number) {
  return allWebhooks(read)
    .where((eb) =>
      eb.or([
        eb('w.created_by_token', 'is', null),
        eb.and([
          eb('p.id', 'is not', null),
          eb('p.revoked_at', 'is', null),
          eb('u.is_deleted', '=', 0),
          eb.or([eb('p.expires_at', 'is', null), eb('p.expires_at', '>', nowMs)]),
        ]),
      ]),
    )
    .select(['w.id', 'w.url', 'w.description', 'w.events', 'w.secret', 'w.org_id as orgId'])
    .select(['w.off_reason as offReason', 'w.off_at as offAt'])
    .select(['w.earlier_secret as earlierSecret', 'w.earlier_secret_until as earlierSecretUntil'])
    .select(['w.created_by as createdBy', 'w.created_by_token as createdByToken'])
    .select(areAdministrators('w.created_by', 'w.address_by', 'w.secret_by').as('areMakersAdministrators'))
    .select(['w.created_at as createdAt', 'w.updated_at as updatedAt']);
}

/** All webhooks that have not ended, in order of creation. */
export function selectWebhooks(read: Reader, nowMs: number): Promise<StoredWebhook[]> {
  return openWebhooks(read, nowMs).orderBy('w.id').execute();
}

/** One webhook that has not ended. */
export function selectWebhook(read: Reader, id: string, nowMs: number): Promise<StoredWebhook | undefined> {
  return openWebhooks(read, nowMs).where('w.id', '=', id).executeTakeFirst();
}

/** Webhooks that have not ended and that some users made, or whose present address or secret they set, in order of creation. */
export function selectWebhooksOf(read: Reader, userIds: readonly string[], nowMs: number): Promise<StoredWebhook[]> {
  return openWebhooks(read, nowMs)
    .where((eb) =>
      eb.or([eb('w.created_by', 'in', userIds), eb('w.address_by', 'in', userIds), eb('w.secret_by', 'in', userIds)]),
    )
    .orderBy('w.id')
    .execute();
}

/** Up to `limit` webhooks that have ended with the token that made them. Rule: SCOPE-26. */
export async function selectEndedWebhooks(read: Reader, nowMs: number, limit: number): Promise<string[]> {
  const open = openWebhooks(read, nowMs).clearSelect().select('w.id');
  const rows = await read.selectFrom('webhooks').where('id', 'not in', open).limit(limit).select('id').execute();
  return rows.map(({ id }) => id);
}

/** Adds a webhook. */
export async function insertWebhook(tx: Tx, row: NewRow<'webhooks'>): Promise<void> {
  await tx.insertInto('webhooks').values(row).execute();
}

/** Changes a webhook. */
export async function updateWebhook(tx: Tx, id: string, changes: Partial<NewRow<'webhooks'>>): Promise<void> {
  await tx.updateTable('webhooks').set(changes).where('id', '=', id).execute();
}

/** Removes a webhook. Its attempts are forgotten in their time. */
export async function deleteWebhookRow(tx: Tx, id: string): Promise<void> {
  await tx.deleteFrom('webhooks').where('id', '=', id).execute();
}

/** Adds an attempt, with its number among those of the same event. */
export async function insertAttempt(tx: Tx, row: Omit<NewRow<'webhook_attempts'>, 'attempt'>): Promise<void> {
  const { earlier } = await tx
    .selectFrom('webhook_attempts')
    .where('webhook_id', '=', row.webhook_id)
    .where('event_id', '=', row.event_id)
    .select((eb) => eb.fn.max('attempt').as('earlier'))
    .executeTakeFirstOrThrow();
  await tx
    .insertInto('webhook_attempts')
    .values({ ...row, attempt: (earlier ?? 0) + 1 })
    .execute();
}

/** Attempts of a webhook, newest first: at most `limit`, and only those before another one. Rule: EVENT-27. */
export function selectAttempts(
  read: Reader,
  {
    webhookId,
    before,
    limit,
  }: { readonly webhookId: string; readonly before: string | undefined; readonly limit: number },
): Promise<StoredAttempt[]> {
  const all = read.selectFrom('webhook_attempts').where('webhook_id', '=', webhookId);
  return (before === undefined ? all : all.where('id', '<', before))
    .orderBy('id', 'desc')
    .limit(limit)
    .select(['id', 'event_id as eventId', 'event_type as eventType', 'sequence', 'attempt', 'status', 'reason'])
    .select(['attempted_at as attemptedAt', 'duration_ms as durationMs'])
    .execute();
}

/** Removes up to `limit` attempts from before a time; returns their number. */
export async function deleteOldAttempts(tx: Tx, beforeMs: number, limit: number): Promise<number> {
  const old = tx.selectFrom('webhook_attempts').where('attempted_at', '<', beforeMs).select('id').limit(limit);
  const { numDeletedRows } = await tx.deleteFrom('webhook_attempts').where('id', 'in', old).executeTakeFirst();
  return Number(numDeletedRows);
}
