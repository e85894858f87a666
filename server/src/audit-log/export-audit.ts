import { stringify } from 'csv-stringify/sync';
import { canonicalJson } from '../base/canonical-json.ts';
import type { Database, Reader } from '../db/database.ts';
import type { AuditLog } from '../db/schema/event-tables.ts';
import { toAuditEntry } from './audit-events.ts';
import { type AuditFilter, streamAudit } from './audit-query.ts';

/** The forms in which records are exported. */
export const exportFormats = ['jsonl', 'csv'] as const;

/** JSON Lines, or CSV as RFC 4180 has it. */
export type ExportFormat = (typeof exportFormats)[number];

const columns = [
  'sequence',
  'id',
  'timestamp',
  'action',
  'outcome',
  'orgId',
  'actorUserId',
  'actorTokenId',
  'actorClientId',
  'subjectId',
  'subjectKind',
  'subjectOwnerId',
  'network',
  'requestId',
  'details',
  'changes',
  'isErased',
  'salt',
  'contentHash',
  'previousHash',
  'hash',
] as const;

/** A record with all that its hash is made of. */
function exported(row: AuditLog) {
  const { hash, ...entry } = toAuditEntry(row);
  return { ...entry, salt: row.salt, contentHash: row.content_hash, previousHash: row.previous_hash, hash };
}

function toLine(row: AuditLog): string {
  return `${JSON.stringify(exported(row))}\n`;
}

/**
 * Writes the oldest records as JSON Lines, in the order of their numbers, up to one. Rule: AUDIT-19.
 */
export async function* archiveAudit(
  db: Pick<Database, 'read' | 'batches'>,
  upTo: number,
): AsyncGenerator<readonly string[]> {
  const rows = db.read.selectFrom('audit_log').where('sequence', '<=', upTo).orderBy('sequence').selectAll();
  for await (const batch of db.batches(rows, 'archive of the audit log')) yield batch.map(toLine);
}

function toCells(row: AuditLog): Record<(typeof columns)[number], string | number | null> {
  const { actor, details, changes, isErased, ...rest } = exported(row);
  return {
    ...rest,
    actorUserId: actor.userId,
    actorTokenId: actor.tokenId,
    actorClientId: actor.clientId,
    details: canonicalJson(details),
    changes: canonicalJson(changes),
    isErased: String(isErased),
  };
}

function toCsv(rows: readonly AuditLog[], header: boolean): string {
  return stringify(rows.map(toCells), {
    columns: [...columns],
    header,
    record_delimiter: 'windows',
    // Cells that a spreadsheet would take for a formula get an apostrophe in front.
    escape_formulas: true,
  });
}

/**
 * Writes records, the oldest first, with all that is needed to verify them without the store. Rule: AUDIT-13.
 * @param onBatch called with the number of written records before each further batch is read
 */
export async function* exportAudit(
  read: Reader,
  { filter, format }: { readonly filter: AuditFilter; readonly format: ExportFormat },
  onBatch: (written: number) => Promise<void> | void = () => {},
): AsyncGenerator<string> {
  let written = 0;
  if (format === 'csv') yield toCsv([], true);
  for await (const rows of streamAudit(read, filter)) {
    yield format === 'csv' ? toCsv(rows, false) : rows.map(toLine).join('');
    written += rows.length;
    await onBatch(written);
  }
}
