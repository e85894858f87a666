import { canonicalJson } from '../base/canonical-json.ts';
import type { Database, Reader } from '../db/database.ts';
import type { AuditLog } from '../db/schema/event-tables.ts';
import { areaOf } from './actions.ts';
import { selectAuditEnd } from './audit-events.ts';
import { contentHashOf, recordHashOf } from './chain.ts';
import { type CheckpointKey, selectAuditStart } from './checkpoint.ts';
import type { ErasureKey } from './erasure-signature.ts';
import { RecordedErasures } from './recorded-erasures.ts';

/** A record and its hash: with it an operator can verify later that the log still contains everything up to there. */
export interface AuditHead {
  /** 0: before the first record. */
  readonly sequence: number;
  readonly hash: string;
}

/** The fault of a record. */
export type AuditFault =
  | 'missing'
  | 'missing-at-end'
  | 'surplus'
  | 'link'
  | 'hash'
  | 'content'
  | 'erased'
  | 'erasure'
  | 'unsigned'
  | 'forged'
  | 'remaining'
  | 'expectation'
  | 'checkpoint'
  | 'removed';

/** Descriptions of faults, for the operator. */
export const auditFaults: Readonly<Record<AuditFault, string>> = {
  missing: 'it is missing',
  'missing-at-end': 'it and all after it are missing: more have been written',
  surplus: 'it was never written: its number has not been given out yet',
  link: 'it does not continue the record before it: one of the two was inserted, moved or rewritten',
  hash: 'it was changed: it does not match its hash',
  content: 'its network, details or changes were changed',
  erased: 'its network, details and changes were erased, and no record shows that a user in it was erased',
  erasure: 'it records the erasure of a user, and the number of erased records is not the one it states',
  unsigned:
    'it tells that a user was erased, and is not signed: an earlier release wrote it (look at it and sign it with audit sign-erasures), or someone without ENCRYPTION_KEY',
  forged: 'it tells that a user was erased, and its signature was not made for it with this ENCRYPTION_KEY',
  remaining: 'it tells that a user was erased, of whom the store still has what an erasure takes away',
  checkpoint: 'the checkpoint that stands for the records before it was not signed with this ENCRYPTION_KEY',
  removed: 'it was removed behind a checkpoint, according to AUDIT_RETENTION_DAYS: see its archive',
  expectation: 'it is consistent, but not the one that was noted: the log was rewritten',
};

/** The whole log was verified, and is sound or has a first broken record. */
export type AuditVerdict =
  | {
      readonly ok: true;
      readonly records: number;
      /** Number of records before them that were removed behind a checkpoint, if any. */
      readonly removed?: number;
      /** Number of them that were erased with a user. */
      readonly erased: number;
      /** Number of records up to the noted one that were erased after it. */
      readonly erasedSince: number;
      /** How many signatures of erasures and checkpoints were believed without the key, where any were. */
      readonly unproved?: number;
      readonly head: AuditHead;
    }
  | { readonly ok: false; readonly records: number; readonly sequence: number; readonly fault: AuditFault };

interface Input {
  /** The head that was noted earlier; `null`: none. */
  readonly expected?: AuditHead | null;
  /** What checkpoints and erasures are signed with; `null`: it is not at hand, and signatures are believed. */
  readonly key?: (CheckpointKey & ErasureKey) | null;
  /** Called now and then with the number of verified records, and of all. */
  readonly progress?: (done: number, total: number) => void;
}

function isIntact(row: AuditLog): boolean {
  const isTimely = Number.isSafeInteger(row.occurred_at) && Math.abs(row.occurred_at) <= 8.64e15;
  return isTimely && row.hash === recordHashOf(row) && row.area === areaOf(row.action);
}

const saltForm = /^[0-9a-f]{32}$/;

/** Returns whether a text is canonical JSON of an object. */
function isCanonical(text: string): boolean {
  try {
    return text.startsWith('{') && canonicalJson(JSON.parse(text)) === text;
  } catch {
    return false;
  }
}

/** The hash is of salt, network, details and changes in one: each has its form, or one could be made longer for another. */
function isContentIntact(salt: string, row: AuditLog): boolean {
  const hasForm = saltForm.test(salt) && isCanonical(row.details) && isCanonical(row.changes);
  return hasForm && contentHashOf(salt, row) === row.content_hash;
}

async function contentFault(erasures: RecordedErasures, row: AuditLog): Promise<AuditFault | null> {
  if (row.salt !== null && !isContentIntact(row.salt, row)) return 'content';
  if (row.salt !== null) return erasures.faultOf(row);
  if (row.network !== '' || row.details !== '{}' || row.changes !== '{}') return 'content';
  return (await erasures.accept(row)) ? null : 'erased';
}

/** Returns the fault of the record that should be the next after `last`; `null`: none. */
async function faultOf(erasures: RecordedErasures, row: AuditLog, last: AuditHead): Promise<AuditFault | null> {
  if (row.sequence !== last.sequence + 1) return row.sequence > last.sequence ? 'missing' : 'surplus';
  if (!isIntact(row)) return 'hash';
  if (row.previous_hash !== last.hash) return 'link';
  return contentFault(erasures, row);
}

/** Returns the place of a fault: a missing record has none of its own. */
function placeOf(fault: AuditFault, row: AuditLog, last: AuditHead): number {
  return fault === 'missing' ? last.sequence + 1 : row.sequence;
}

/**
 * Returns the fault at the end of the log; `null`: none.
 * @param least the record that it has to reach
 */
async function faultOfEnd(read: Reader, { sequence }: AuditHead, least: number) {
  // Between the two looks at the counter others may have written: neither look may tell of a fault that isn't there.
  if (sequence < least) return { fault: 'missing-at-end', sequence: sequence + 1 } as const;
  const writtenAfter = await selectAuditEnd(read);
  return sequence > writtenAfter ? ({ fault: 'surplus', sequence: writtenAfter + 1 } as const) : null;
}

/** Returns whether a record differs from the one that was noted with its number. */
function isAnother(expected: AuditHead | null, head: AuditHead): boolean {
  return expected?.sequence === head.sequence && expected.hash !== head.hash;
}

/** Returns what contradicts the noted head before any record is read; `null`: nothing. */
function faultOfStart(expected: AuditHead | null, start: AuditHead) {
  if (!expected) return null;
  if (expected.sequence < start.sequence) return { fault: 'removed', sequence: expected.sequence } as const;
  return isAnother(expected, start) ? ({ fault: 'expectation', sequence: start.sequence } as const) : null;
}

/** Counts of a sound log besides its records and its end. */
function soundParts(
  { count: erased, countSince: erasedSince, unproved }: RecordedErasures,
  { start, isBelieved }: { readonly start: AuditHead; readonly isBelieved: boolean },
) {
  const removed = start.sequence > 0 ? { removed: start.sequence } : {};
  const believed = unproved + (isBelieved ? 1 : 0);
  return { ...removed, erased, erasedSince, ...(believed > 0 ? { unproved: believed } : {}) };
}

/**
 * Goes through the whole audit log, without changing anything and without blocking writers, and answers the
 * first record that is broken. A log that someone rewrote from some record to its end, hashes included, is sound in itself:
 * only a head that was noted earlier tells. A log whose oldest records were removed begins at the checkpoint that stands in
 * their place. Rules: AUDIT-10, AUDIT-11, AUDIT-14, AUDIT-18 to AUDIT-20.
 */
export async function verifyAudit(
  db: Pick<Database, 'read' | 'batches'>,
  { expected = null, key = null, progress = () => {} }: Input = {},
): Promise<AuditVerdict> {
  const writtenBefore = await selectAuditEnd(db.read);
  const start = await selectAuditStart(db.read, key);
  if (!start) return { ok: false, records: 0, sequence: 1, fault: 'checkpoint' };
  const after = expected?.sequence ?? Number.POSITIVE_INFINITY;
  const erasures = new RecordedErasures(db.read, { after, isWhole: start.sequence === 0, key });
  let last: AuditHead = start;
  const broken = (fault: AuditFault, sequence: number) =>
    ({ ok: false, records: last.sequence - start.sequence, sequence, fault }) as const;
  const early = faultOfStart(expected, start);
  if (early) return broken(early.fault, early.sequence);
  const rows = db.read.selectFrom('audit_log').orderBy('sequence').selectAll();
  for await (const batch of db.batches(rows, 'verification of the audit log')) {
    for (const row of batch) {
      const fault = await faultOf(erasures, row, last);
      if (fault) return broken(fault, placeOf(fault, row, last));
      last = { sequence: row.sequence, hash: row.hash };
      if (isAnother(expected, last)) return broken('expectation', row.sequence);
    }
    progress(last.sequence, Math.max(last.sequence, writtenBefore));
  }
  const end = await faultOfEnd(db.read, last, Math.max(writtenBefore, expected?.sequence ?? 0));
  if (end) return broken(end.fault, end.sequence);
  const isBelieved = key === null && start.sequence > 0;
  return {
    ok: true,
    ...soundParts(erasures, { start, isBelieved }),
    records: last.sequence - start.sequence,
    head: last,
  };
}
