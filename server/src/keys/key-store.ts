import type { Database, Reader, Tx } from '../db/database.ts';

const name = 'signing';

/** The signing keys that the nodes of a shared store have in common, encrypted; `null` where there are none. */
export async function selectSharedKeys({ read }: { readonly read: Reader }): Promise<string | null> {
  const row = await read.selectFrom('shared_keys').where('name', '=', name).select('content').executeTakeFirst();
  return row?.content ?? null;
}

/** Stores the keys unless another node was quicker. */
export async function insertSharedKeys(db: Database, content: string, nowMs: number): Promise<void> {
  await db.transaction((tx) =>
    tx
      .insertInto('shared_keys')
      .values({ name, content, created_at: nowMs })
      .onConflict((oc) => oc.column('name').doNothing())
      .execute(),
  );
}

/** Puts others in place of the keys that are there. */
export async function updateSharedKeys(tx: Tx, content: string): Promise<void> {
  await tx.updateTable('shared_keys').set({ content }).where('name', '=', name).execute();
}

/** Returns when the oldest valid personal access token was created; `null`: there is none. */
export async function selectOldestLiveToken(read: Reader, nowMs: number): Promise<number | null> {
  const row = await read
    .selectFrom('personal_access_tokens')
    .where('revoked_at', 'is', null)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', nowMs)]))
    .select((eb) => eb.fn.min('created_at').as('oldest'))
    .executeTakeFirst();
  return row?.oldest ?? null;
}
