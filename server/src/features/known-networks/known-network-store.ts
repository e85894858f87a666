import type { Reader, Tx } from '../../db/database.ts';

/**
 * Returns whether an active user with this normalized address signed in from a network since a time. One query in every
 * case.
 */
export async function selectIsKnown(
  read: Reader,
  { email, network, sinceMs }: { readonly email: string; readonly network: string; readonly sinceMs: number },
): Promise<boolean> {
  const row = await read
    .selectFrom('users as u')
    .innerJoin('known_networks as k', 'k.user_id', 'u.id')
    .where('u.email', '=', email)
    .where('u.is_deleted', '=', 0)
    .where('k.network', '=', network)
    .where('k.last_at', '>', sinceMs)
    .select('k.user_id')
    .executeTakeFirst();
  return row !== undefined;
}

/** Returns whether a user signed in from a network since a time. */
export async function selectIsNetworkOf(
  read: Reader,
  { userId, network, sinceMs }: { readonly userId: string; readonly network: string; readonly sinceMs: number },
): Promise<boolean> {
  const row = await read
    .selectFrom('known_networks')
    .where('user_id', '=', userId)
    .where('network', '=', network)
    .where('last_at', '>', sinceMs)
    .select('user_id')
    .executeTakeFirst();
  return row !== undefined;
}

/** Notes when a user last signed in from a network. */
export async function upsertNetwork(
  tx: Tx,
  { userId, network, nowMs }: { readonly userId: string; readonly network: string; readonly nowMs: number },
): Promise<void> {
  await tx
    .insertInto('known_networks')
    .values({ user_id: userId, network, last_at: nowMs })
    .onConflict((oc) => oc.columns(['user_id', 'network']).doUpdateSet({ last_at: nowMs }))
    .execute();
}

/** Removes the networks of a user. */
export async function deleteNetworks(tx: Tx, userId: string): Promise<void> {
  await tx.deleteFrom('known_networks').where('user_id', '=', userId).execute();
}

/** Removes up to `limit` networks without a sign-in since a time; returns their number. */
export async function deleteOldNetworks(tx: Tx, beforeMs: number, limit: number): Promise<number> {
  const old = await tx
    .selectFrom('known_networks')
    .where('last_at', '<', beforeMs)
    .select(['user_id', 'network'])
    .limit(limit)
    .execute();
  for (const { user_id, network } of old) {
    await tx.deleteFrom('known_networks').where('user_id', '=', user_id).where('network', '=', network).execute();
  }
  return old.length;
}
