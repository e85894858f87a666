import { randomBytes } from 'node:crypto';
import type { Principal, ServicePrincipal } from '../access/principal.ts';
import type { Clock } from '../base/clock.ts';
import type { NewId } from '../base/ids.ts';
import type { Origin } from '../base/origin.ts';
import { takeNumbers } from '../db/counters.ts';
import type { Tx } from '../db/database.ts';
import type { NewRow } from '../db/schema/tables.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { type AuditAction, areaOf } from './actions.ts';
import { chainStart, contentHashOf, recordHashOf } from './chain.ts';
import { boundedJson, type Changes } from './changes.ts';

/** The actor: the user or service of the request, or the user that the act itself proves. */
type Actor = Principal | ServicePrincipal | { readonly userId: string } | { readonly clientId: string };

/** An act as it is to be recorded. */
export interface AuditRecord {
  readonly action: AuditAction;
  /** Default: `success`. */
  readonly outcome?: 'success' | 'failure';
  /** `null`: the system as a whole. */
  readonly orgId: string | null;
  /** The actor. `null`: the service itself, or its operator. */
  readonly actor: Actor | null;
  /** The id of the subject; `null`: more than one thing, or nothing that has one. */
  readonly subjectId: string | null;
  /** Owner of the subject, where it belongs to a user: of a token or a session. */
  readonly ownerId?: string | null;
  readonly origin: Origin;
  /**
   * Further details; like the changes, shortened to 4 KB. Never a secret, and nothing about users other than actor,
   * subject and owner, except ids.
   */
  readonly details?: Readonly<Record<string, unknown>>;
  /**
   * Changes made by the act. Never a secret, and nothing about users other than actor, subject and owner, except ids.
   */
  readonly changes?: Changes;
}

/** Dependencies for writing records. */
export interface AuditParts {
  readonly clock: Clock;
  readonly newId: NewId;
  readonly metrics: Pick<Metrics, 'countActivity'>;
}

/** As many rows as one statement takes on either engine. */
const rowsAtOnce = 500;
const saltBytes = 16;

function actorColumns(actor: Actor | null) {
  return {
    actor_user_id: actor && 'userId' in actor ? actor.userId : null,
    actor_token_id: actor && 'tokenId' in actor ? actor.tokenId : null,
    actor_client_id: actor && 'clientId' in actor ? actor.clientId : null,
  };
}

function contentColumns({ origin: { network }, details = {}, changes = {} }: AuditRecord, salt: string) {
  const content = { network, details: boundedJson(details), changes: boundedJson(changes) };
  return { ...content, salt, content_hash: contentHashOf(salt, content) };
}

/** The hash that the next record holds: that of the record with this sequence. */
async function selectHash(tx: Tx, sequence: number): Promise<string> {
  const row = await tx.selectFrom('audit_log').where('sequence', '=', sequence).select('hash').executeTakeFirst();
  return row?.hash ?? chainStart;
}

/** Makes rows that hold on to each other, and the first one to the log as it is. Rule: AUDIT-10. */
async function chained(tx: Tx, { clock, newId }: AuditParts, records: readonly AuditRecord[]) {
  const first = await takeNumbers(tx, 'audit', records.length);
  const salts = randomBytes(saltBytes * records.length).toString('hex');
  let previous_hash = await selectHash(tx, first - 1);
  const rows: NewRow<'audit_log'>[] = [];
  for (const [place, record] of records.entries()) {
    const salt = salts.slice(place * saltBytes * 2, (place + 1) * saltBytes * 2);
    const { action, outcome = 'success', orgId, subjectId, ownerId = null, origin } = record;
    const row = {
      sequence: first + place,
      id: newId(),
      occurred_at: clock.now(),
      org_id: orgId,
      action,
      area: areaOf(action),
      outcome,
      ...actorColumns(record.actor),
      subject_id: subjectId,
      subject_owner_id: ownerId,
      request_id: origin.requestId,
      ...contentColumns(record, salt),
      previous_hash,
    };
    previous_hash = recordHashOf(row);
    rows.push({ ...row, hash: previous_hash });
  }
  return rows;
}

/**
 * Writes records in the transaction of the acts that they tell of, and counts the activity. Rules: AUDIT-1, AUDIT-2,
 * AUDIT-9, AUDIT-10.
 */
export async function appendAudit(tx: Tx, parts: AuditParts, ...records: readonly AuditRecord[]): Promise<void> {
  if (records.length === 0) return;
  const rows = await chained(tx, parts, records);
  for (let start = 0; start < rows.length; start += rowsAtOnce) {
    await tx
      .insertInto('audit_log')
      .values(rows.slice(start, start + rowsAtOnce))
      .execute();
  }
  for (const { action } of records) parts.metrics.countActivity(action);
}
