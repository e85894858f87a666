import { appendAudit } from '../../audit-log/audit-log.ts';
import { eraseAuditContent } from '../../audit-log/erase-audit.ts';
import {
  type ErasureKey,
  erasureMac,
  selectErasureRecords,
  signErasure,
  signNewestErasure,
} from '../../audit-log/erasure-signature.ts';
import type { Origin } from '../../base/origin.ts';
import type { Reader } from '../../db/database.ts';
import { selectRemainingUsers } from '../../db/members/erasure-traces.ts';
import { endLinksShownTo } from '../../features/links/public.ts';
import { revokeTokensOf } from '../../features/tokens/public.ts';
import type { AllServices, Services } from '../../services.ts';
import {
  deleteOwnRows,
  selectErasable,
  selectNotErased,
  updateErased,
  updateEventsErased,
  updateTokensErased,
} from './erasure-store.ts';

type OperatorServices = Pick<AllServices, 'db' | 'clock' | 'newId'> & {
  /** What the record of the erasure is signed with. */
  readonly encryption: ErasureKey;
  readonly metrics: Pick<Services['metrics'], 'countActivity'>;
};

/** The reason why a user cannot be erased. */
export type ErasureError = 'noSuchUser' | 'userNotDeleted' | 'userErased';

/** Outcome of an erasure. */
export interface Erasure {
  readonly userId: string;
  /** Records of the audit log that tell no more than ids now. */
  readonly records: number;
  /** Events that are kept and tell no more than ids now. */
  readonly events: number;
}

/** The slug of a deleted user whose data is still there, or why it cannot be erased. */
export async function findErasable(
  read: Reader,
  userId: string,
): Promise<{ readonly slug: string; readonly orgId: string } | ErasureError> {
  const user = await selectErasable(read, userId);
  if (!user) return 'noSuchUser';
  if (user.isDeleted === 0) return 'userNotDeleted';
  return user.erasedAt === null ? user : 'userErased';
}

/**
 * Erases the data of a deleted person, for good: what is left is an id. The audit log stays verifiable, events keep their
 * types and ids, and the person can't be restored any more. The record of it is signed. Rules: AUDIT-14, AUDIT-20.
 */
export function eraseUser(
  services: OperatorServices,
  { userId, origin }: { readonly userId: string; readonly origin: Origin },
): Promise<Erasure | ErasureError> {
  return services.db.transaction(async (tx) => {
    const user = await findErasable(tx, userId);
    if (typeof user === 'string') return user;
    const { orgId } = user;
    const records = await eraseAuditContent(tx, userId);
    const events = await updateEventsErased(tx, { userId, orgId });
    await revokeTokensOf(tx, services, { owner: { userId }, orgId, by: null, reason: 'Owner was erased', origin });
    await updateTokensErased(tx, userId);
    const nowMs = services.clock.now();
    await endLinksShownTo(tx, [userId], nowMs);
    await deleteOwnRows(tx, userId);
    await updateErased(tx, userId, nowMs);
    const erased = { records, events };
    const record = { action: 'user.erased', orgId, actor: null, subjectId: userId, origin } as const;
    await appendAudit(tx, services, { ...record, details: erased });
    await signNewestErasure(tx, { userId, key: services.encryption, nowMs });
    return { userId, ...erased };
  });
}

/** A record of an erasure without a signature of this key. */
export interface UnsignedErasure {
  readonly sequence: number;
  readonly hash: string;
  /** Milliseconds since 1970. */
  readonly occurredAt: number;
  readonly userId: string;
  /** Whether the user is erased, as far as the store knows one: only then can the record be signed. */
  readonly isErased: boolean;
}

/** The records of erasures that are not signed with a key, in order: those of earlier releases, and forged ones. */
export async function findUnsignedErasures(read: Reader, key: ErasureKey): Promise<readonly UnsignedErasure[]> {
  const records = (await selectErasureRecords(read)).filter(({ mac, ...record }) => mac !== erasureMac(key, record));
  const ids = records.flatMap(({ userId }) => userId ?? []);
  const remaining = (await selectRemainingUsers(read)).map(({ userId }) => userId);
  const living = new Set([...remaining, ...(await selectNotErased(read, ids))]);
  return records.map(({ sequence, hash, occurredAt, userId: id }) => {
    const userId = id ?? '';
    return { sequence, hash, occurredAt, userId, isErased: id !== null && !living.has(id) };
  });
}

/**
 * Signs the records of erasures that someone has looked at, as far as their users are erased, and records that. Rule:
 * AUDIT-20.
 * @returns how many were signed
 */
export function signErasures(
  services: OperatorServices,
  { sequences, origin }: { readonly sequences: readonly number[]; readonly origin: Origin },
): Promise<number> {
  const { db, clock, encryption: key } = services;
  return db.transaction(async (tx) => {
    const wanted = new Set(sequences);
    const found = await findUnsignedErasures(tx, key);
    const signed = found.filter(({ sequence, isErased }) => isErased && wanted.has(sequence));
    for (const record of signed) await signErasure(tx, { key, nowMs: clock.now() }, record);
    const act = { action: 'audit.erasures-signed', orgId: null, actor: null, subjectId: null, origin } as const;
    const details = { count: signed.length, records: signed.map(({ sequence }) => String(sequence)) };
    if (signed.length > 0) await appendAudit(tx, services, { ...act, details });
    return signed.length;
  });
}
