import { day, toTimestamp } from '../base/clock.ts';
import type { Origin } from '../base/origin.ts';
import { batchRows, removeInBatches } from '../db/batches.ts';
import type { Reader } from '../db/database.ts';
import { auditStream } from '../outbox/envelope.ts';
import { selectRelays } from '../outbox/relay/relay-store.ts';
import { isSubscriptionTo } from '../outbox/relay/subscription.ts';
import type { AllServices, Services } from '../services.ts';
import { selectAuditEnd } from './audit-events.ts';
import { appendAudit } from './audit-log.ts';
import { type CheckpointKey, signCheckpoint, upsertCheckpoint } from './checkpoint.ts';
import { deleteSignatures } from './erasure-signature.ts';

type Parts = Pick<AllServices, 'db' | 'clock' | 'newId'> & {
  readonly encryption: CheckpointKey;
  readonly metrics: Pick<Services['metrics'], 'countActivity'>;
};

/** The last record before a time such that all records up to it are older; 0 without any. In milliseconds since 1970. */
export async function selectLastBefore(read: Reader, beforeMs: number): Promise<number> {
  const later = await read
    .selectFrom('audit_log')
    .where('occurred_at', '>=', beforeMs)
    .select((eb) => eb.fn.min<number | null>('sequence').as('sequence'))
    .executeTakeFirst();
  const sequence = later?.sequence ?? null;
  return sequence === null ? selectAuditEnd(read) : sequence - 1;
}

/** The last record of one batch of those to be removed; `undefined` where none is left. */
async function selectBatchEnd(read: Reader, upTo: number) {
  const batch = await read
    .selectFrom('audit_log')
    .where('sequence', '<=', upTo)
    .orderBy('sequence')
    .limit(batchRows)
    .select(['sequence', 'hash'])
    .execute();
  return batch.at(-1);
}

/**
 * Removes the oldest records up to one, in batches, each in one transaction with the signed checkpoint that replaces
 * them; the first records this in the log. The rest can be verified as before. Rule: AUDIT-19.
 * @returns the number of removed records
 */
export async function removeAudit(parts: Parts, upTo: number, origin: Origin): Promise<number> {
  const { db, clock, encryption } = parts;
  let isRecorded = false;
  return removeInBatches(async () => {
    const end = await selectBatchEnd(db.read, upTo);
    if (!end) return 0;
    const content = await signCheckpoint(encryption, end);
    return db.transaction(async (tx) => {
      const record = { action: 'audit.removed', orgId: null, actor: null, subjectId: null, origin } as const;
      // Before the removal: the log is never empty, so that the next record has one to go on from.
      if (!isRecorded) await appendAudit(tx, parts, { ...record, details: { upTo } });
      isRecorded = true;
      const { numDeletedRows } = await tx
        .deleteFrom('audit_log')
        .where('sequence', '<=', end.sequence)
        .executeTakeFirst();
      await deleteSignatures(tx, end.sequence);
      // Another node may have removed them, and more, meanwhile.
      if (numDeletedRows > 0n) await upsertCheckpoint(tx, content, clock.now());
      return Number(numDeletedRows);
    });
  });
}

/**
 * Removes records that are older than `AUDIT_RETENTION_DAYS`; returns their number. Records that an active subscription
 * has not delivered yet are kept until then. Rule: AUDIT-19.
 */
export async function pruneAudit(services: AllServices): Promise<number> {
  const { db, clock, config, relays } = services;
  const days = config.auditRetentionDays;
  if (days === null || !relays.isAlive()) return 0;
  const names = new Set(relays.names().filter((name) => isSubscriptionTo(auditStream, name)));
  const inUse = (await selectRelays(db.read)).filter(({ name }) => names.has(name));
  const last = await selectLastBefore(db.read, clock.now() - days * day);
  const upTo = Math.min(last, ...inUse.map(({ position }) => position));
  const origin = { requestId: `retention ${toTimestamp(clock.now())}`, network: 'local' };
  return (await selectBatchEnd(db.read, upTo)) ? removeAudit(services, upTo, origin) : 0;
}
