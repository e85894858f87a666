import { z } from 'zod';

/** Details of a removal in the audit log: the removed users. */
export const removalDetails = z.object({ userIds: z.array(z.string()) });

/** A removal of members of a group, as the audit log has it. */
export interface Removal {
  readonly sequence: number;
  /** `null`: the record was erased with the administrator who acted, and the removed users are unknown. */
  readonly userIds: readonly string[] | null;
}

/** Creation or deletion of a user, from the audit log. */
export interface Life {
  readonly userId: string;
  readonly action: string;
  readonly sequence: number;
}

/**
 * Returns those of some users who were removed from a group, or from all of them by deletion. Where the record of a
 * removal was erased, all users who existed before it count as removed. Rule: CRED-6.
 */
export function takenOutAmong(
  userIds: readonly string[],
  { removals, lives }: { readonly removals: readonly Removal[]; readonly lives: readonly Life[] },
): ReadonlySet<string> {
  const erasedAt = Math.max(0, ...removals.flatMap(({ sequence, userIds: known }) => (known === null ? sequence : [])));
  const takenOut = new Set(removals.flatMap(({ userIds: known }) => known ?? []));
  const madeAt = new Map<string, number>();
  for (const { userId, action, sequence } of lives) {
    if (action === 'user.deleted') takenOut.add(userId);
    else madeAt.set(userId, sequence);
  }
  return new Set(userIds.filter((id) => takenOut.has(id) || (madeAt.get(id) ?? 0) < erasedAt));
}
