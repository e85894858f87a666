import { sql } from 'kysely';
import type { Reader, Tx } from '../../db/database.ts';
import { type UserSearch, userMatches } from '../../db/members/user-search.ts';
import { verifiedEmail } from '../../db/members/users.ts';
import { contains } from '../../db/search.ts';
import type { FoundTeam, StoredTeam } from './team.ts';
import type { TeamRole } from './team-input.ts';

/** Filter for the teams of a user. */
interface TeamFilter {
  readonly orgId: string;
  readonly userId: string;
  /** Folded: see `foldCase`. */
  readonly search: string | undefined;
  /** The id of the user who made them. */
  readonly createdBy: string | undefined;
  /** Milliseconds since 1970, inclusive. */
  readonly createdAfterMs: number | undefined;
  readonly createdBeforeMs: number | undefined;
}

interface Page {
  readonly offset: number;
  readonly limit: number;
}

function teamsOf(read: Reader, filter: TeamFilter) {
  const { orgId, userId, search, createdBy, createdAfterMs, createdBeforeMs } = filter;
  let query = read
    .selectFrom('team_members as m')
    .innerJoin('teams as t', 't.id', 'm.team_id')
    .leftJoin('users as u', 'u.id', 't.created_by')
    .where('m.user_id', '=', userId)
    .where('t.org_id', '=', orgId);
  if (createdBy !== undefined) query = query.where('t.created_by', '=', createdBy);
  if (createdAfterMs !== undefined) query = query.where('t.created_at', '>=', createdAfterMs);
  if (createdBeforeMs !== undefined) query = query.where('t.created_at', '<=', createdBeforeMs);
  if (!search) return query;
  return query.where((eb) => eb.or([contains('t.name_key', search), contains('t.description_key', search)]));
}

/** The name of a team's creator, empty for one whom the store does not know. */
const creatorName = sql<string>`coalesce(u.full_name, '')`.as('creatorName');
const creatorEmail = sql<string>`coalesce(${verifiedEmail('u')}, '')`.as('creatorEmail');

/** Returns the number of teams of a user that match a search. */
export async function countTeamsOf(read: Reader, filter: TeamFilter): Promise<number> {
  const row = await teamsOf(read, filter)
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow();
  return row.total;
}

/** Returns a page of the teams of a user, newest first, with the user's role in each. */
export function selectTeamPageOf(
  read: Reader,
  filter: TeamFilter,
  { offset, limit }: Page,
): Promise<(FoundTeam & { readonly role: TeamRole })[]> {
  return teamsOf(read, filter)
    .orderBy('m.team_id', 'desc')
    .limit(limit)
    .offset(offset)
    .selectAll('t')
    .select(['m.role', creatorName, creatorEmail])
    .execute();
}

/** Returns a team, and a user's role in it; `null` for none. */
export function selectTeam(
  read: Reader,
  id: string,
  { orgId, userId }: { readonly orgId: string; readonly userId: string },
): Promise<FoundTeam | undefined> {
  return read
    .selectFrom('teams as t')
    .leftJoin('team_members as m', (join) => join.onRef('m.team_id', '=', 't.id').on('m.user_id', '=', userId))
    .leftJoin('users as u', 'u.id', 't.created_by')
    .where('t.id', '=', id)
    .where('t.org_id', '=', orgId)
    .selectAll('t')
    .select(['m.role', creatorName, creatorEmail])
    .executeTakeFirst();
}

/** Adds a team. */
export async function insertTeam(tx: Tx, team: StoredTeam): Promise<void> {
  await tx.insertInto('teams').values(team).execute();
}

/** Updates the columns of a team that can be changed. */
export async function updateTeam(tx: Tx, team: StoredTeam): Promise<void> {
  const { name, name_key, description, description_key, updated_at } = team;
  await tx
    .updateTable('teams')
    .set({ name, name_key, description, description_key, updated_at })
    .where('id', '=', team.id)
    .execute();
}

/** Deletes a team without members. */
export async function deleteTeamRow(tx: Tx, id: string): Promise<void> {
  await tx.deleteFrom('teams').where('id', '=', id).execute();
}

/** Filter of the user list. */
interface UserFilter {
  readonly orgId: string;
  readonly search: UserSearch | undefined;
}

function activeUsers(read: Reader, { orgId, search }: UserFilter) {
  const query = read.selectFrom('users').where('org_id', '=', orgId).where('is_deleted', '=', 0);
  if (!search) return query;
  return query.where((eb) => eb.or(userMatches('users', search)));
}

/** Returns the number of active users that match a search. */
export async function countDirectoryUsers(read: Reader, filter: UserFilter): Promise<number> {
  const row = await activeUsers(read, filter)
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow();
  return row.total;
}

/** One page of active users, by name. The page is cut on an index, and only its rows are read. */
export function selectDirectoryUserPage(read: Reader, filter: UserFilter, { offset, limit }: Page) {
  const ids = activeUsers(read, filter).orderBy('name_key').orderBy('id').limit(limit).offset(offset).select('id');
  return read
    .selectFrom('users')
    .where('id', 'in', ids)
    .orderBy('name_key')
    .orderBy('id')
    .select(['id', 'org_id as orgId', 'full_name as name', verifiedEmail('users').as('email')])
    .select(['created_at as createdAtMs', 'updated_at as updatedAtMs'])
    .execute();
}
