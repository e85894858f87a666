import type { Tx } from '../../database.ts';

const batch = 500;

interface AddressRow {
  readonly action: string;
  readonly actor_user_id: string | null;
  readonly subject_id: string | null;
  readonly details: string;
}

/** The users who, as far as the audit log still has it, chose their address, and whether it was confirmed by its link. */
function ownersOf(rows: readonly AddressRow[]): ReadonlyMap<string, 'chosen' | 'confirmed'> {
  const owners = new Map<string, 'chosen' | 'confirmed'>();
  for (const { action, actor_user_id: actorId, subject_id: userId, details } of rows) {
    if (userId === null) continue;
    const isLink = action === 'user.email-confirmed' && details.includes('"how":"link"');
    if (isLink) owners.set(userId, 'confirmed');
    else if (action !== 'user.updated') owners.delete(userId);
    else if (actorId !== userId) owners.delete(userId);
    else if (!owners.has(userId)) owners.set(userId, 'chosen');
  }
  return owners;
}

/** Marks the accounts whose verified address their users chose themselves. Rule: ADDRESS-14. */
export async function up(tx: Tx): Promise<void> {
  await tx.schema
    .alterTable('users')
    .addColumn('email_is_own', 'integer', (c) => c.notNull().defaultTo(0))
    .execute();
  const rows = await tx
    .selectFrom('audit_log')
    .where('action', 'in', ['user.updated', 'user.email-confirmed'])
    .where('outcome', '=', 'success')
    .where((eb) => eb.or([eb('action', '!=', 'user.updated'), eb('changes', 'like', '%"email":{%')]))
    .orderBy('sequence')
    .select(['action', 'actor_user_id', 'subject_id', 'details'])
    .execute();
  const owners = [...ownersOf(rows)];
  for (let start = 0; start < owners.length; start += batch) {
    const some = owners.slice(start, start + batch);
    const confirmed = some.flatMap(([id, how]) => (how === 'confirmed' ? [id] : []));
    const chosen = some.flatMap(([id, how]) => (how === 'chosen' ? [id] : []));
    const marked = tx.updateTable('users').set({ email_is_own: 1 });
    if (confirmed.length > 0) await marked.where('id', 'in', confirmed).execute();
    // One that is still unverified is not the address by which single sign-on finds the account.
    if (chosen.length > 0) await marked.where('id', 'in', chosen).where('recovery_email', 'is', null).execute();
  }
}
