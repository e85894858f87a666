import { sql } from 'kysely';
import type { Tx } from '../../db/database.ts';

/** Counts of what ended since the back-up, or is unknown by now, and is ended in it as well. */
export interface CarriedOver {
  readonly tokensRevoked: number;
  readonly sessionsEnded: number;
  readonly linksEnded: number;
  readonly passwordsChanged: number;
  readonly addressesChanged: number;
  readonly identitiesRemoved: number;
  readonly usersDeleted: number;
  readonly usersErased: number;
  readonly administratorsRemoved: number;
  readonly servicesEnded: number;
  readonly webhooksRemoved: number;
}

/** Counts of what was created in the present store since the back-up, and is not in it. */
export interface LeftBehind {
  readonly users: number;
  readonly tokens: number;
  readonly sessions: number;
  readonly services: number;
  readonly webhooks: number;
}

const administrators = (schema: 'main' | 'present') => sql`
  SELECT m.user_id FROM ${sql.raw(schema)}.group_members m
  JOIN ${sql.raw(schema)}.user_groups g ON g.id = m.group_id WHERE g.type = 'admin'`;

/** Counts what ended in the present store and not in the restored one. */
export async function selectCarriedOver(tx: Tx): Promise<CarriedOver> {
  const { rows } = await sql<CarriedOver>`SELECT
    (SELECT count(*) FROM main.personal_access_tokens m LEFT JOIN present.personal_access_tokens p ON p.id = m.id
      WHERE m.revoked_at IS NULL AND (p.id IS NULL OR p.revoked_at IS NOT NULL)) AS tokensRevoked,
    (SELECT count(*) FROM main.sessions m LEFT JOIN present.sessions p ON p.id = m.id
      WHERE m.ended_at IS NULL AND (p.id IS NULL OR p.ended_at IS NOT NULL)) AS sessionsEnded,
    (SELECT count(*) FROM main.one_time_links m LEFT JOIN present.one_time_links p ON p.id = m.id
      WHERE m.ended_at IS NULL AND (p.id IS NULL OR p.ended_at IS NOT NULL)) AS linksEnded,
    (SELECT count(*) FROM main.password_credentials m LEFT JOIN present.password_credentials p ON p.user_id = m.user_id
      WHERE p.password_hash IS NOT m.password_hash) AS passwordsChanged,
    (SELECT count(*) FROM main.users m JOIN present.users p ON p.id = m.id
      WHERE p.erased_at IS NULL AND (p.email <> m.email OR p.recovery_email IS NOT m.recovery_email)) AS addressesChanged,
    (SELECT count(*) FROM main.external_identities m LEFT JOIN present.external_identities p
      ON p.issuer = m.issuer AND p.subject = m.subject AND p.user_id = m.user_id
      WHERE m.unlinked_at IS NULL AND (p.user_id IS NULL OR p.unlinked_at IS NOT NULL)) AS identitiesRemoved,
    (SELECT count(*) FROM main.users m JOIN present.users p ON p.id = m.id
      WHERE m.is_deleted = 0 AND p.is_deleted = 1) AS usersDeleted,
    (SELECT count(*) FROM main.users m JOIN present.users p ON p.id = m.id
      WHERE m.erased_at IS NULL AND p.erased_at IS NOT NULL) AS usersErased,
    (SELECT count(*) FROM main.users u WHERE u.id IN (${administrators('main')})
      AND u.id NOT IN (${administrators('present')})) AS administratorsRemoved,
    (SELECT count(*) FROM main.service_clients m LEFT JOIN present.service_clients p ON p.id = m.id
      WHERE m.deleted_at IS NULL AND (p.id IS NULL OR p.deleted_at IS NOT NULL)) AS servicesEnded,
    (SELECT count(*) FROM main.webhooks WHERE id NOT IN (SELECT id FROM present.webhooks)) AS webhooksRemoved`.execute(
    tx,
  );
  const [counted] = rows;
  if (!counted) throw new Error('nothing was counted');
  return counted;
}

/** Counts what exists in the present store and not in the restored one. */
export async function selectLeftBehind(tx: Tx): Promise<LeftBehind> {
  const { rows } = await sql<LeftBehind>`SELECT
    (SELECT count(*) FROM present.users WHERE is_deleted = 0 AND id NOT IN (SELECT id FROM main.users)) AS users,
    (SELECT count(*) FROM present.personal_access_tokens WHERE revoked_at IS NULL
      AND id NOT IN (SELECT id FROM main.personal_access_tokens)) AS tokens,
    (SELECT count(*) FROM present.sessions WHERE ended_at IS NULL AND id NOT IN (SELECT id FROM main.sessions)) AS sessions,
    (SELECT count(*) FROM present.service_clients WHERE deleted_at IS NULL
      AND id NOT IN (SELECT id FROM main.service_clients)) AS services,
    (SELECT count(*) FROM present.webhooks WHERE id NOT IN (SELECT id FROM main.webhooks)) AS webhooks`.execute(tx);
  const [counted] = rows;
  if (!counted) throw new Error('nothing was counted');
  return counted;
}

/**
 * Returns whether the present store continues the restored one: same organization, and a log that contains its last
 * record.
 * @param by columns that prove that it is the same record
 */
export async function selectIsContinued(
  tx: Tx,
  by: 'hash' | 'id',
): Promise<{ readonly organization: boolean; readonly log: boolean }> {
  const { rows } = await sql<{ organization: number; log: number }>`SELECT
    (SELECT id FROM main.organizations) IS (SELECT id FROM present.organizations) AS organization,
    NOT EXISTS (SELECT 1 FROM main.audit_log m LEFT JOIN present.audit_log p ON p.sequence = m.sequence
      WHERE m.sequence = (SELECT max(sequence) FROM main.audit_log) AND p.${sql.ref(by)} IS NOT m.${sql.ref(by)}) AS log`.execute(
    tx,
  );
  return { organization: rows[0]?.organization === 1, log: rows[0]?.log === 1 };
}

/** Returns whether both stores have the same tables, with the same columns in the same order. */
export async function selectIsAlike(tx: Tx, tables: readonly string[]): Promise<boolean> {
  for (const table of tables) {
    const columns = (schema: string) =>
      sql<{ name: string }>`SELECT name FROM pragma_table_info(${table}, ${schema}) ORDER BY cid`.execute(tx);
    const [main, present] = [await columns('main'), await columns('present')];
    if (JSON.stringify(main.rows) !== JSON.stringify(present.rows)) return false;
  }
  return true;
}

/** A user of whom consumers know other data than the restored store has. */
export interface PublishedUser {
  readonly userId: string;
  readonly orgId: string;
  readonly email: string;
  readonly fullName: string;
  readonly firstName: string | null;
  readonly middleName: string | null;
  readonly lastName: string | null;
  readonly designation: string | null;
}

const published = (alias: 'm' | 'p') => {
  const a = sql.raw(alias);
  return sql`${a}.id AS userId, ${a}.org_id AS orgId, ${a}.email AS email, ${a}.full_name AS fullName,
    ${a}.first_name AS firstName, ${a}.middle_name AS middleName, ${a}.last_name AS lastName,
    ${a}.designation AS designation`;
};

/**
 * Returns the users that consumers need events about: gone with the present store, back with the restored one, or
 * changed.
 */
export async function selectDifferences(tx: Tx) {
  const gone = await sql<PublishedUser>`SELECT ${published('p')} FROM present.users p
    LEFT JOIN main.users m ON m.id = p.id AND m.is_deleted = 0
    WHERE p.is_deleted = 0 AND m.id IS NULL ORDER BY p.id`.execute(tx);
  const back = await sql<PublishedUser>`SELECT ${published('m')} FROM main.users m
    LEFT JOIN present.users p ON p.id = m.id AND p.is_deleted = 0
    WHERE m.is_deleted = 0 AND p.id IS NULL ORDER BY m.id`.execute(tx);
  const other = await sql<PublishedUser>`SELECT ${published('m')} FROM main.users m JOIN present.users p ON p.id = m.id
    WHERE m.is_deleted = 0 AND p.is_deleted = 0 AND (m.email <> p.email OR m.full_name <> p.full_name
      OR m.first_name IS NOT p.first_name OR m.middle_name IS NOT p.middle_name
      OR m.last_name IS NOT p.last_name OR m.designation IS NOT p.designation) ORDER BY m.id`.execute(tx);
  return { gone: gone.rows, back: back.rows, other: other.rows };
}

/** The organization, where consumers know it by another name; `undefined` where they don't, or it is deleted. */
export async function selectRenamed(tx: Tx): Promise<{ orgId: string; registeredName: string | null } | undefined> {
  const { rows } = await sql<{ orgId: string; registeredName: string | null }>`SELECT m.id AS orgId,
    m.registered_name AS registeredName FROM main.organizations m JOIN present.organizations p ON p.id = m.id
    WHERE m.is_deleted = 0 AND m.registered_name IS NOT p.registered_name`.execute(tx);
  return rows[0];
}

/** Returns the number of active administrators of the restored store; `null` where it has no active organization. */
export async function selectAdministrators(tx: Tx): Promise<number | null> {
  const { rows } = await sql<{ organizations: number; users: number }>`SELECT
    (SELECT count(*) FROM main.organizations WHERE is_deleted = 0) AS organizations,
    (SELECT count(*) FROM main.users WHERE is_deleted = 0 AND id IN (${administrators('main')})) AS people`.execute(tx);
  return rows[0]?.organizations === 1 ? rows[0].users : null;
}
