import { type RawBuilder, sql } from 'kysely';
import type { Tx } from '../../db/database.ts';

/** Tables that are replaced completely by those of the present store. */
const wholeTables = [
  'settings',
  'auth_configs',
  'outbox',
  'audit_log',
  'audit_checkpoints',
  'audit_erasures',
  'relays',
  'dead_letters',
  'webhook_attempts',
];
/** Tables of the present store that are read row by row. */
const readTables = [
  'organizations',
  'users',
  'user_groups',
  'group_members',
  'password_credentials',
  'personal_access_tokens',
  'sessions',
  'session_tokens',
  'one_time_links',
  'external_identities',
  'service_clients',
  'service_tokens',
  'webhooks',
  'counters',
];

/** Every table that is read of the present store. */
export const carriedTables: readonly string[] = [...wholeTables, ...readTables];

async function runAll(tx: Tx, statements: readonly RawBuilder<unknown>[]): Promise<void> {
  for (const statement of statements) await statement.execute(tx);
}

const erased = sql`(SELECT id FROM present.users WHERE erased_at IS NOT NULL)`;
const unlikely = sql`'moving:' || id`;

/** True for an address that no user unknown to the present store has. */
const isFree = sql`NOT EXISTS (SELECT 1 FROM main.users o
  WHERE o.email = p.email AND o.id NOT IN (SELECT id FROM present.users))`;

/**
 * Deletes or erases users again who were since the back-up, and keeps addresses that changed since: recovery mail goes
 * there.
 */
export function updateUsers(tx: Tx): Promise<void> {
  return runAll(tx, [
    sql`DELETE FROM main.pictures WHERE owner_id IN ${erased}`,
    sql`CREATE TEMP TABLE erased_here AS SELECT id FROM main.users WHERE id IN ${erased}`,
    sql`DELETE FROM main.users WHERE id IN (SELECT id FROM erased_here)`,
    sql`INSERT INTO main.users SELECT * FROM present.users WHERE id IN (SELECT id FROM erased_here)`,
    sql`DROP TABLE temp.erased_here`,
    sql`UPDATE main.users AS u SET is_deleted = 1, deleted_by = p.deleted_by, has_logged_in = 0, signed_in_at = NULL,
      updated_at = p.updated_at FROM present.users AS p WHERE p.id = u.id AND p.is_deleted = 1 AND u.is_deleted = 0`,
    // In two steps: two users may have exchanged addresses.
    sql`UPDATE main.users SET email = ${unlikely} WHERE id IN (SELECT m.id FROM main.users m
      JOIN present.users p ON p.id = m.id WHERE p.email <> m.email AND ${isFree})`,
    sql`UPDATE main.users AS u SET email = p.email FROM present.users AS p
      WHERE p.id = u.id AND u.email = 'moving:' || u.id`,
    // Only with the address that they belong to: the address of the backup is verified as it was then.
    sql`UPDATE main.users AS u SET recovery_email = p.recovery_email, email_verified_at = p.email_verified_at,
      email_is_own = p.email_is_own
      FROM present.users AS p WHERE p.id = u.id AND p.email = u.email`,
    sql`UPDATE main.organizations AS o SET is_deleted = 1, deleted_by = p.deleted_by, updated_at = p.updated_at
      FROM present.organizations AS p WHERE p.id = o.id AND p.is_deleted = 1 AND o.is_deleted = 0`,
  ]);
}

const presentAdministrators = sql`(SELECT m.user_id FROM present.group_members m
  JOIN present.user_groups g ON g.id = m.group_id WHERE g.type = 'admin')`;
const adminGroups = sql`(SELECT id FROM main.user_groups WHERE type = 'admin')`;
const deleted = sql`(SELECT id FROM main.users WHERE is_deleted = 1)`;

/** Removes memberships of deleted users and of former administrators. Teams pass to the remaining members. */
export function updateMemberships(tx: Tx): Promise<void> {
  return runAll(tx, [
    sql`DELETE FROM main.group_members WHERE user_id IN ${deleted}`,
    sql`DELETE FROM main.team_members WHERE user_id IN ${deleted}`,
    sql`UPDATE main.team_members AS t SET role = 'OWNER' WHERE NOT EXISTS (SELECT 1 FROM main.team_members o
      WHERE o.team_id = t.team_id AND o.role = 'OWNER') AND t.user_id = (SELECT o.user_id FROM main.team_members o
      WHERE o.team_id = t.team_id ORDER BY CASE o.role WHEN 'WRITER' THEN 0 ELSE 1 END, o.joined_at, o.user_id LIMIT 1)`,
    sql`DELETE FROM main.group_members WHERE group_id IN ${adminGroups} AND user_id NOT IN ${presentAdministrators}`,
    // There has to be an administrator: if all of that time are gone, those who are one now and existed then.
    sql`INSERT INTO main.group_members (group_id, user_id) SELECT g.id, u.id FROM main.user_groups g
      JOIN main.users u ON u.org_id = g.org_id WHERE g.type = 'admin' AND u.is_deleted = 0
      AND u.id IN ${presentAdministrators} AND NOT EXISTS (SELECT 1 FROM main.group_members WHERE group_id IN ${adminGroups})`,
  ]);
}

/** Takes over sign-in steps, identities and sessions of the present store; those created since are left out. */
export function updateSignIns(tx: Tx): Promise<void> {
  return runAll(tx, [
    sql`DELETE FROM main.password_credentials`,
    sql`INSERT INTO main.password_credentials SELECT * FROM present.password_credentials
      WHERE user_id IN (SELECT id FROM main.users WHERE is_deleted = 0)`,
    sql`DELETE FROM main.external_identities WHERE (issuer, subject, user_id) NOT IN
      (SELECT issuer, subject, user_id FROM present.external_identities)`,
    sql`UPDATE main.external_identities AS i SET unlinked_at = p.unlinked_at FROM present.external_identities AS p
      WHERE p.issuer = i.issuer AND p.subject = i.subject AND p.user_id = i.user_id`,
    sql`DELETE FROM main.one_time_links WHERE id NOT IN (SELECT id FROM present.one_time_links)`,
    sql`UPDATE main.one_time_links AS l SET ended_at = p.ended_at, end_reason = p.end_reason, is_current = p.is_current
      FROM present.one_time_links AS p WHERE p.id = l.id`,
    sql`DELETE FROM main.session_tokens`,
    sql`DELETE FROM main.sessions WHERE id NOT IN (SELECT id FROM present.sessions)`,
    sql`UPDATE main.sessions AS s SET ended_at = p.ended_at, end_reason = p.end_reason, active_at = p.active_at
      FROM present.sessions AS p WHERE p.id = s.id`,
    // A refresh token that was exchanged since must count as exchanged, and the one that took its place go on.
    sql`INSERT INTO main.session_tokens SELECT * FROM present.session_tokens
      WHERE session_id IN (SELECT id FROM main.sessions)`,
  ]);
}

/** Takes over the state of tokens and service clients; those unknown to the present store are ended. */
export function updateTokens(tx: Tx, nowMs: number, reason: string): Promise<void> {
  return runAll(tx, [
    sql`UPDATE main.personal_access_tokens SET revoked_at = ${nowMs}, revoke_reason = ${reason}
      WHERE revoked_at IS NULL AND id NOT IN (SELECT id FROM present.personal_access_tokens)`,
    sql`UPDATE main.personal_access_tokens AS t SET revoked_at = p.revoked_at, revoked_by = p.revoked_by,
      revoke_reason = p.revoke_reason, last_used_at = p.last_used_at, name = p.name, name_key = p.name_key
      FROM present.personal_access_tokens AS p WHERE p.id = t.id`,
    sql`UPDATE main.service_clients SET deleted_at = ${nowMs}
      WHERE deleted_at IS NULL AND id NOT IN (SELECT id FROM present.service_clients)`,
    sql`UPDATE main.service_clients AS c SET deleted_at = p.deleted_at, secret_hash = p.secret_hash, scopes = p.scopes,
      secret_by = p.secret_by, earlier_secret_hash = p.earlier_secret_hash, earlier_secret_until = p.earlier_secret_until,
      last_used_at = p.last_used_at FROM present.service_clients AS p WHERE p.id = c.id`,
    sql`DELETE FROM main.service_tokens`,
    sql`INSERT INTO main.service_tokens SELECT * FROM present.service_tokens
      WHERE client_id IN (SELECT id FROM main.service_clients)`,
    sql`DELETE FROM main.webhooks WHERE id NOT IN (SELECT id FROM present.webhooks)`,
    sql`INSERT OR REPLACE INTO main.webhooks SELECT * FROM present.webhooks WHERE id IN (SELECT id FROM main.webhooks)`,
  ]);
}

const isLost = (column: string) => sql`${sql.raw(column)} LIKE '%/webhook/%' AND NOT EXISTS
  (SELECT 1 FROM main.webhooks w WHERE ${sql.raw(column)} LIKE '%/webhook/' || w.id)`;

/** Settings and both logs as the present store has them, and no number that it gave out is given out again. */
export function replaceTables(tx: Tx): Promise<void> {
  const whole = wholeTables.flatMap((table) => [
    sql`DELETE FROM main.${sql.ref(table)}`,
    sql`INSERT INTO main.${sql.ref(table)} SELECT * FROM present.${sql.ref(table)}`,
  ]);
  return runAll(tx, [
    ...whole,
    sql`DELETE FROM main.relays WHERE ${isLost('name')}`,
    sql`DELETE FROM main.dead_letters WHERE ${isLost('relay')}`,
    sql`DELETE FROM main.webhook_attempts WHERE webhook_id NOT IN (SELECT id FROM main.webhooks)`,
    sql`INSERT INTO main.counters SELECT * FROM present.counters WHERE true
      ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)`,
  ]);
}

/** Deletes unfinished sign-ins and leases of relays. */
export function deleteHalfDone(tx: Tx): Promise<void> {
  return runAll(tx, [
    sql`DELETE FROM main.one_time_codes`,
    sql`DELETE FROM main.mailed_codes`,
    sql`DELETE FROM main.known_networks`,
    sql`DELETE FROM main.sign_in_progress`,
    sql`DELETE FROM main.sign_in_tickets`,
    sql`DELETE FROM main.sign_in_ends`,
    sql`UPDATE main.relays SET holder = NULL, held_until = 0`,
  ]);
}

/** Skips numbers of events that may have been given out since. */
export function updateEventCounter(tx: Tx, skipped: number): Promise<void> {
  return runAll(tx, [
    sql`INSERT INTO main.counters (name, value) VALUES ('event', ${skipped})
      ON CONFLICT (name) DO UPDATE SET value = value + ${skipped}`,
  ]);
}

/** Ends every service client that gets tokens, and its tokens; returns the number of clients. */
export async function updateServicesEnded(tx: Tx, nowMs: number): Promise<number> {
  await tx.updateTable('service_tokens').set({ revoked_at: nowMs }).where('revoked_at', 'is', null).execute();
  const { numUpdatedRows } = await tx
    .updateTable('service_clients')
    .set({ deleted_at: nowMs })
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/** Deletes all passwords; returns their number. */
export async function deletePasswords(tx: Tx): Promise<number> {
  const { numDeletedRows } = await tx.deleteFrom('password_credentials').executeTakeFirst();
  return Number(numDeletedRows);
}

/** Returns the number of open sessions. */
export async function countSessions(tx: Tx): Promise<number> {
  const { count } = await tx
    .selectFrom('sessions')
    .where('ended_at', 'is', null)
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return count;
}

/** The organization, deleted or not. */
export async function selectOrganizationId(tx: Tx): Promise<string | null> {
  const row = await tx.selectFrom('organizations').select('id').executeTakeFirst();
  return row?.id ?? null;
}
