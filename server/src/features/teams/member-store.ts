import { sql } from 'kysely';
import type { Reader, Tx } from '../../db/database.ts';
import { type UserSearch, userMatches } from '../../db/members/user-search.ts';
import { verifiedEmail } from '../../db/members/users.ts';
import type { NewRow } from '../../db/schema/tables.ts';
import type { TeamMember } from './team.ts';

function membersOf(read: Reader, teamIds: readonly string[]) {
  return read
    .selectFrom('team_members as m')
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .where('m.team_id', 'in', teamIds);
}

type Members = ReturnType<typeof membersOf>;

function byName(query: Members) {
  return query
    .orderBy('u.name_key')
    .orderBy('u.id')
    .select(['m.team_id as teamId', 'm.user_id as userId', 'u.full_name as userName'])
    .select(verifiedEmail('u').as('userEmail'))
    .select(['m.role', 'm.joined_at as joinedAtMs']);
}

/** Returns the members of some teams, by name. */
export async function selectMembers(read: Reader, teamIds: readonly string[]): Promise<TeamMember[]> {
  if (teamIds.length === 0) return [];
  return byName(membersOf(read, teamIds)).execute();
}

/**
 * Returns the first members of each team to have joined, by name, and each team's number of members: lists of many
 * large teams would delay other requests.
 */
export async function selectFirstMembers(
  read: Reader,
  teamIds: readonly string[],
  each: number,
): Promise<(TeamMember & { readonly memberCount: number })[]> {
  if (teamIds.length === 0) return [];
  const placed = read
    .selectFrom('team_members')
    .where('team_id', 'in', teamIds)
    .select(['team_id', 'user_id', 'role', 'joined_at'])
    .select(sql<number>`row_number() over (partition by team_id order by joined_at, user_id)`.as('place'))
    .select(sql<number>`count(*) over (partition by team_id)`.as('memberCount'));
  return read
    .selectFrom(placed.as('placed'))
    .innerJoin('users as u', 'u.id', 'placed.user_id')
    .where('placed.place', '<=', each)
    .orderBy('u.name_key')
    .orderBy('u.id')
    .select(['placed.team_id as teamId', 'placed.user_id as userId', 'u.full_name as userName'])
    .select(verifiedEmail('u').as('userEmail'))
    .select(['placed.role', 'placed.joined_at as joinedAtMs', 'placed.memberCount'])
    .execute();
}

interface MemberFilter {
  readonly teamId: string;
  readonly search: UserSearch | undefined;
}

function found(read: Reader, { teamId, search }: MemberFilter): Members {
  const query = membersOf(read, [teamId]);
  if (!search) return query;
  return query.where((eb) => eb.or(userMatches('u', search)));
}

/** Returns the number of members of a team that match a search. */
export async function countMembers(read: Reader, filter: MemberFilter): Promise<number> {
  const row = await found(read, filter)
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow();
  return row.total;
}

/** One page of the members of a team, by name. */
export function selectMemberPage(
  read: Reader,
  filter: MemberFilter,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): Promise<TeamMember[]> {
  return byName(found(read, filter)).limit(limit).offset(offset).execute();
}

/** Returns the times when the members of a team joined it, in milliseconds since 1970. */
export async function selectJoinTimes(read: Reader, teamId: string): Promise<ReadonlyMap<string, number>> {
  const rows = await read
    .selectFrom('team_members')
    .where('team_id', '=', teamId)
    .select(['user_id', 'joined_at'])
    .execute();
  return new Map(rows.map((row) => [row.user_id, row.joined_at]));
}

/** Returns the ids of those of some users who are active in an organization. */
export async function selectActiveIds(
  read: Reader,
  orgId: string,
  users: readonly { readonly userId: string }[],
): Promise<string[]> {
  if (users.length === 0) return [];
  const rows = await read
    .selectFrom('users')
    .where(
      'id',
      'in',
      users.map(({ userId }) => userId),
    )
    .where('org_id', '=', orgId)
    .where('is_deleted', '=', 0)
    .select('id')
    .execute();
  return rows.map((row) => row.id);
}

/** Adds members, as many as one statement takes; none of them may be one already. */
export async function insertMembers(tx: Tx, members: readonly NewRow<'team_members'>[]): Promise<void> {
  await tx.insertInto('team_members').values(members).execute();
}

/** Removes all members of a team. */
export async function deleteAllMembers(tx: Tx, teamId: string): Promise<void> {
  await tx.deleteFrom('team_members').where('team_id', '=', teamId).execute();
}

/** Removes a user from all teams. */
export async function deleteMemberships(tx: Tx, userId: string): Promise<void> {
  await tx.deleteFrom('team_members').where('user_id', '=', userId).execute();
}

/** The next owner of a team. */
interface NextOwner {
  readonly teamId: string;
  readonly userId: string;
}

/**
 * Returns, for each team whose only owner is a user, the other member who has the highest role for the longest time.
 */
export async function selectNextOwners(tx: Tx, ownerId: string): Promise<NextOwner[]> {
  const owned = tx
    .selectFrom('team_members as own')
    .where('own.user_id', '=', ownerId)
    .where('own.role', '=', 'OWNER')
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('team_members as other')
            .whereRef('other.team_id', '=', 'own.team_id')
            .where('other.role', '=', 'OWNER')
            .where('other.user_id', '<>', ownerId)
            .select('other.user_id'),
        ),
      ),
    )
    .select('own.team_id');
  const rank = sql`case role when 'WRITER' then 0 else 1 end`;
  const ranked = tx
    .selectFrom('team_members')
    .where('team_id', 'in', owned)
    .where('user_id', '<>', ownerId)
    .select(['team_id as teamId', 'user_id as userId'])
    .select(sql<number>`row_number() over (partition by team_id order by ${rank}, joined_at, user_id)`.as('place'));
  return tx
    .selectFrom(ranked.as('ranked'))
    .where('place', '=', 1)
    .orderBy('teamId')
    .select(['teamId', 'userId'])
    .execute();
}

/** Makes members of teams their owners, as many as one statement takes. */
export async function updateToOwners(tx: Tx, nextOwners: readonly NextOwner[]): Promise<void> {
  await tx
    .updateTable('team_members')
    .set({ role: 'OWNER' })
    .where(({ eb, refTuple, tuple }) =>
      eb(
        refTuple('team_id', 'user_id'),
        'in',
        nextOwners.map(({ teamId, userId }) => tuple(teamId, userId)),
      ),
    )
    .execute();
}
