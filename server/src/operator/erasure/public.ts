import { appendAudit } from '../../audit-log/audit-log.ts';
import { eraseAuditContent } from '../../audit-log/erase-audit.ts';
import type { Origin } from '../../base/origin.ts';
import type { Reader } from '../../db/database.ts';
import { revokeTokensOf } from '../../features/tokens/public.ts';
import type { AllServices, Services } from '../../services.ts';
import {
  deleteOwnRows,
  selectErasable,
  updateErased,
  updateEventsErased,
  updateTokensErased,
} from './erasure-store.ts';

type OperatorServices = Pick<AllServices, 'db' | 'clock' | 'newId'> & {
  readonly metrics: Pick<Services['metrics'], 'countActivity'>;
};

/** Why nobody is erased. */
export type ErasureRefusal = 'noSuchUser' | 'userNotDeleted' | 'userErased';

/** What erasing did. */
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
): Promise<{ readonly slug: string; readonly orgId: string } | ErasureRefusal> {
  const user = await selectErasable(read, userId);
  if (!user) return 'noSuchUser';
  if (user.isDeleted === 0) return 'userNotDeleted';
  return user.erasedAt === null ? user : 'userErased';
}

/**
 * Erases the data of a deleted person, for good: what is left is an id. The audit log stays verifiable, events keep their
 * types and ids, and the person can't be restored any more. Rule: AUDIT-14.
 */
export function erasePerson(
  services: OperatorServices,
  { userId, origin }: { readonly userId: string; readonly origin: Origin },
): Promise<Erasure | ErasureRefusal> {
  return services.db.transaction(async (tx) => {
    const user = await findErasable(tx, userId);
    if (typeof user === 'string') return user;
    const { orgId } = user;
    const records = await eraseAuditContent(tx, userId);
    const events = await updateEventsErased(tx, { userId, orgId });
    await revokeTokensOf(tx, services, { owner: { userId }, orgId, by: null, reason: 'Owner was erased', origin });
    await updateTokensErased(tx, userId);
    await deleteOwnRows(tx, userId);
    await updateErased(tx, userId, services.clock.now());
    const erased = { records, events };
    const record = { action: 'user.erased', orgId, actor: null, subjectId: userId, origin } as const;
    await appendAudit(tx, services, { ...record, details: erased });
    return { userId, ...erased };
  });
}
