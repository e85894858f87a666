import { hash } from 'node:crypto';
import { toTimestamp } from '../base/clock.ts';

/** Stands for the hash of the record before the first. */
export const chainStart = '0'.repeat(64);

/** The form that hashes are made by; another one gets another name. */
const form = 'latchkey-audit-1';

/** Stored parts of a record that can be erased. */
export interface AuditContent {
  readonly network: string;
  /** Canonical JSON of an object. */
  readonly details: string;
  /** Canonical JSON of an object. */
  readonly changes: string;
}

/**
 * Returns the hash of the parts that can be erased: the content cannot be guessed from it once the salt is gone. Rules:
 * AUDIT-10, AUDIT-14.
 */
export function contentHashOf(salt: string, { network, details, changes }: AuditContent): string {
  return hash('sha256', `${salt}[${JSON.stringify(network)},${details},${changes}]`, 'hex');
}

/** Stored parts of a record that stay for ever. */
export interface ChainedFields {
  readonly sequence: number;
  readonly id: string;
  readonly occurred_at: number;
  readonly org_id: string | null;
  readonly action: string;
  readonly outcome: string;
  readonly actor_user_id: string | null;
  readonly actor_token_id: string | null;
  readonly actor_client_id: string | null;
  readonly subject_id: string | null;
  readonly subject_owner_id: string | null;
  readonly request_id: string;
  readonly content_hash: string;
  readonly previous_hash: string;
}

/** The hash of a record, which the record after it holds. Rule: AUDIT-10. */
export function recordHashOf(row: ChainedFields): string {
  const fields = [
    form,
    row.previous_hash,
    row.sequence,
    row.id,
    toTimestamp(row.occurred_at),
    row.org_id,
    row.action,
    row.outcome,
    row.actor_user_id,
    row.actor_token_id,
    row.actor_client_id,
    row.subject_id,
    row.subject_owner_id,
    row.request_id,
    row.content_hash,
  ];
  return hash('sha256', JSON.stringify(fields), 'hex');
}
