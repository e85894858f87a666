import { toTimestamp } from '../base/clock.ts';
import { readCounter } from '../db/counters.ts';
import type { Reader } from '../db/database.ts';
import type { AuditLog } from '../db/schema/event-tables.ts';
import type { StreamedEvent } from '../outbox/envelope.ts';
import { subjectKindOf } from './actions.ts';
import type { Changes } from './changes.ts';

/** A record of the audit log as the API returns it. */
export interface AuditEntry {
  readonly id: string;
  readonly sequence: number;
  /** ISO 8601 in UTC with milliseconds. */
  readonly timestamp: string;
  readonly action: string;
  readonly outcome: 'success' | 'failure';
  /** `null`: the system as a whole. */
  readonly orgId: string | null;
  /** All `null`: the service itself, or its operator. */
  readonly actor: {
    readonly userId: string | null;
    readonly tokenId: string | null;
    readonly clientId: string | null;
  };
  readonly subjectId: string | null;
  readonly subjectKind: string | null;
  /** Whose the subject is: of a token or a session. */
  readonly subjectOwnerId: string | null;
  /** `null`: erased. */
  readonly network: string | null;
  readonly requestId: string;
  readonly details: Readonly<Record<string, unknown>>;
  readonly changes: Changes;
  /** Network, details and changes were erased with the data of a user. */
  readonly isErased: boolean;
  readonly hash: string;
}

function parsed<T>(text: string): T {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what `appendAudit` wrote
  return JSON.parse(text) as T;
}

/** Converts a stored record to the form that the API returns. */
export function toAuditEntry(row: AuditLog): AuditEntry {
  const isErased = row.salt === null;
  return {
    id: row.id,
    sequence: row.sequence,
    timestamp: toTimestamp(row.occurred_at),
    action: row.action,
    outcome: row.outcome,
    orgId: row.org_id,
    actor: { userId: row.actor_user_id, tokenId: row.actor_token_id, clientId: row.actor_client_id },
    subjectId: row.subject_id,
    subjectKind: subjectKindOf(row.action, { subjectId: row.subject_id, orgId: row.org_id }),
    subjectOwnerId: row.subject_owner_id,
    network: isErased ? null : row.network,
    requestId: row.request_id,
    details: parsed<AuditEntry['details']>(row.details),
    changes: parsed<Changes>(row.changes),
    isErased,
    hash: row.hash,
  };
}

/** The sequence of the last record; 0 before the first. */
export function selectAuditEnd(read: Reader): Promise<number> {
  return readCounter(read, 'audit');
}

function toStreamedRecord(row: AuditLog): StreamedEvent {
  const { id, sequence, action: eventType, occurred_at: timestamp } = row;
  return { key: row.org_id ?? '', envelope: { eventType, timestamp, payload: { ...toAuditEntry(row) }, id, sequence } };
}

/** Reads the records with these sequences, as events of the stream `audit-events`. */
export async function readAuditEventsOf(read: Reader, sequences: readonly number[]): Promise<readonly StreamedEvent[]> {
  if (sequences.length === 0) return [];
  const rows = await read.selectFrom('audit_log').where('sequence', 'in', sequences).selectAll().execute();
  return rows.map(toStreamedRecord);
}

/**
 * Reads records in the order of their sequence, as events of the stream `audit-events`. A reader that continues after
 * the last one misses none: numbers are assigned in commit order. Rule: AUDIT-1.
 * @param after only those with a greater sequence
 * @param limit the maximum number of records
 */
export async function readAuditEvents(read: Reader, after: number, limit: number): Promise<readonly StreamedEvent[]> {
  const rows = await read
    .selectFrom('audit_log')
    .where('sequence', '>', after)
    .orderBy('sequence')
    .limit(limit)
    .selectAll()
    .execute();
  return rows.map(toStreamedRecord);
}
