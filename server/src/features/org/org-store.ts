import type { Reader, Tx } from '../../db/database.ts';
import type { StoredOrganization } from './org.ts';

/** One organization, deleted or not. */
export function selectOrganization(read: Reader, id: string): Promise<StoredOrganization> {
  return read.selectFrom('organizations').where('id', '=', id).selectAll().executeTakeFirstOrThrow();
}

/**
 * Adds the organization, unless there is one already.
 * @returns whether it was added: of several at once, exactly one is
 */
export async function insertOrganization(tx: Tx, org: StoredOrganization): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto('organizations')
    .values({ ...org, singleton: 1 })
    .onConflict((oc) => oc.column('singleton').doNothing())
    .executeTakeFirst();
  return numInsertedOrUpdatedRows === 1n;
}

/** The organization of this system, deleted or not; `undefined` while there is none. */
export function selectTheOrganization(read: Reader): Promise<StoredOrganization | undefined> {
  return read.selectFrom('organizations').selectAll().executeTakeFirst();
}

/** Updates all columns of the organization. */
export async function updateOrganization(tx: Tx, org: StoredOrganization): Promise<void> {
  await tx.updateTable('organizations').set(org).where('id', '=', org.id).execute();
}

/** Number of deleted rows, by table. */
export type DeletedRows = Readonly<Record<string, number>>;

/** The positions of webhooks; those of a broker stay, as the events do. */
const ofWebhooks = 'entity-events/webhook/%';

/**
 * Deletes the organization with everything that belongs to it, and overwrites the rows in the file. Events, audit rows
 * and counters stay.
 */
export async function deleteEverythingOf(tx: Tx, orgId: string): Promise<DeletedRows> {
  const users = tx.selectFrom('users').where('org_id', '=', orgId).select('id');
  const sessions = tx.selectFrom('sessions').where('org_id', '=', orgId).select('id');
  // What refers to other rows goes before them.
  const steps = {
    session_tokens: tx.deleteFrom('session_tokens').where('session_id', 'in', sessions),
    sessions: tx.deleteFrom('sessions').where('org_id', '=', orgId),
    personal_access_tokens: tx.deleteFrom('personal_access_tokens').where('org_id', '=', orgId),
    external_identities: tx.deleteFrom('external_identities').where('user_id', 'in', users),
    sign_in_tickets: tx.deleteFrom('sign_in_tickets').where('user_id', 'in', users),
    sign_in_ends: tx.deleteFrom('sign_in_ends').where('user_id', 'in', users),
    sign_in_progress: tx.deleteFrom('sign_in_progress').where('user_id', 'in', users),
    one_time_codes: tx.deleteFrom('one_time_codes').where('user_id', 'in', users),
    wrong_codes: tx.deleteFrom('wrong_codes').where('user_id', 'in', users),
    mailed_codes: tx.deleteFrom('mailed_codes').where('user_id', 'in', users),
    known_networks: tx.deleteFrom('known_networks').where('user_id', 'in', users),
    idempotency_keys: tx.deleteFrom('idempotency_keys').where('user_id', 'in', users),
    service_tokens: tx.deleteFrom('service_tokens'),
    service_clients: tx.deleteFrom('service_clients'),
    webhook_attempts: tx.deleteFrom('webhook_attempts'),
    dead_letters: tx.deleteFrom('dead_letters').where('relay', 'like', ofWebhooks),
    relays: tx.deleteFrom('relays').where('name', 'like', ofWebhooks),
    webhooks: tx.deleteFrom('webhooks'),
    one_time_links: tx.deleteFrom('one_time_links').where('org_id', '=', orgId),
    settings: tx.deleteFrom('settings'),
    pictures: tx.deleteFrom('pictures').where('org_id', '=', orgId),
    password_credentials: tx.deleteFrom('password_credentials').where('user_id', 'in', users),
    team_members: tx.deleteFrom('team_members').where('user_id', 'in', users),
    teams: tx.deleteFrom('teams').where('org_id', '=', orgId),
    group_members: tx.deleteFrom('group_members').where('user_id', 'in', users),
    user_groups: tx.deleteFrom('user_groups').where('org_id', '=', orgId),
    users: tx.deleteFrom('users').where('org_id', '=', orgId),
    auth_configs: tx.deleteFrom('auth_configs').where('org_id', '=', orgId),
    organizations: tx.deleteFrom('organizations').where('id', '=', orgId),
  };
  const deleted: Record<string, number> = {};
  for (const [table, step] of Object.entries(steps)) {
    const { numDeletedRows } = await step.executeTakeFirst();
    deleted[table] = Number(numDeletedRows);
  }
  return deleted;
}
