import type { Reader, Tx } from '../db/database.ts';
import type { Encryption } from '../keys/encryption.ts';

/** Signs records of erasures, and proves the signatures. */
export type ErasureKey = Pick<Encryption, 'mac'>;

/** A record of an erasure. The hash covers all of it, the user and the number of records included. */
export interface ErasureRecord {
  readonly sequence: number;
  readonly hash: string;
}

const purpose = 'audit-erasure';

/** The signature of an erasure: no one without the encryption key can make it (HMAC-SHA-256). Rule: AUDIT-20. */
export function erasureMac(key: ErasureKey, { sequence, hash }: ErasureRecord): string {
  return key.mac(purpose, `${sequence}:${hash}`);
}

/** Signs a record of an erasure, in place of an earlier signature. */
export async function signErasure(
  tx: Tx,
  { key, nowMs }: { readonly key: ErasureKey; readonly nowMs: number },
  record: ErasureRecord,
): Promise<void> {
  const values = { mac: erasureMac(key, record), signed_at: nowMs };
  await tx
    .insertInto('audit_erasures')
    .values({ sequence: record.sequence, ...values })
    .onConflict((oc) => oc.column('sequence').doUpdateSet(values))
    .execute();
}

/** Signs the newest record of an erasure of a user. */
export async function signNewestErasure(
  tx: Tx,
  { userId, ...by }: { readonly userId: string; readonly key: ErasureKey; readonly nowMs: number },
): Promise<void> {
  const record = await tx
    .selectFrom('audit_log')
    .where('action', '=', 'user.erased')
    .where('subject_id', '=', userId)
    .orderBy('sequence', 'desc')
    .limit(1)
    .select(['sequence', 'hash'])
    .executeTakeFirstOrThrow();
  await signErasure(tx, by, record);
}

/** All records of erasures with their signatures, in order; `mac` `null`: none. */
export function selectErasureRecords(read: Reader) {
  return read
    .selectFrom('audit_log as a')
    .leftJoin('audit_erasures as e', 'e.sequence', 'a.sequence')
    .where('a.action', '=', 'user.erased')
    .orderBy('a.sequence')
    .select(['a.sequence', 'a.hash', 'a.occurred_at as occurredAt', 'a.subject_id as userId', 'e.mac'])
    .execute();
}

/** What speaks against the signature of a record of an erasure; `null`: nothing. @param key `null`: it is not at hand */
export async function signatureFault(
  read: Reader,
  key: ErasureKey | null,
  record: ErasureRecord,
): Promise<'unsigned' | 'forged' | null> {
  const row = await read
    .selectFrom('audit_erasures')
    .where('sequence', '=', record.sequence)
    .select('mac')
    .executeTakeFirst();
  if (!row) return 'unsigned';
  return key !== null && row.mac !== erasureMac(key, record) ? 'forged' : null;
}

/** Removes the signatures of records up to one, which are removed. */
export async function deleteSignatures(tx: Tx, upTo: number): Promise<void> {
  await tx.deleteFrom('audit_erasures').where('sequence', '<=', upTo).execute();
}
