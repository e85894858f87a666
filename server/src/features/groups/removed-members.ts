import { z } from 'zod';

/** What the record of a removal says of who was removed. */
export const removalDetails = z.object({ userIds: z.array(z.string()) });

/** A removal of members of a group, as the audit log has it. */
export interface Removal {
  readonly sequence: number;
  /** `null`: the record was erased with the administrator who did it, and nobody knows who was removed. */
  readonly userIds: readonly string[] | null;
}

/** That a user was made or deleted, as the audit log has it. */
export interface Life {
  readonly userId: string;
  readonly action: string;
  readonly sequence: number;
}

/**
 * Those of some users who were taken out of a group, or out of all of them by being deleted. Where the record of a removal
 * was erased, all who were there before it count. Rule: CRED-6.
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
