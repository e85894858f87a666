import { z } from 'zod';
import { ApiError } from '../../base/errors.ts';
import type { NewRow } from '../../db/schema/tables.ts';
import { components, idResponse } from '../../http/schemas.ts';
import { emailResponse } from '../../text/email-address.ts';
import type { NamedMember, TeamRole } from './team-input.ts';
import { roles } from './team-input.ts';

/** A team as the store has it. */
export interface StoredTeam {
  readonly id: string;
  readonly org_id: string;
  readonly name: string;
  readonly name_key: string;
  readonly description: string | null;
  readonly description_key: string;
  readonly created_by: string;
  readonly created_at: number;
  readonly updated_at: number;
}

/** A team with its creator, and the role of a user in it; `null` for none. */
export interface FoundTeam extends StoredTeam {
  readonly role: TeamRole | null;
  readonly creatorName: string;
  /** The last verified one. */
  readonly creatorEmail: string;
}

/** A member of a team, with name and address. */
export interface TeamMember {
  readonly teamId: string;
  readonly userId: string;
  readonly userName: string;
  readonly userEmail: string;
  readonly role: TeamRole;
  readonly joinedAtMs: number;
}

/** A time of the team directory. */
export const milliseconds = z.int().describe('Milliseconds since 1970');

/** A member of a team, as returned; `id` is that of the user. Rule: TEAM-16. */
export const memberRecord = z.object({
  id: idResponse,
  userId: idResponse,
  userName: z.string(),
  userEmail: emailResponse,
  role: z.enum(roles),
  joinedAt: milliseconds,
  isOwner: z.boolean(),
});
components.add(memberRecord, { id: 'TeamMember' });

/** A team as returned, with all its members by name, and the rights of the caller. Rules: TEAM-15, FIT-74. */
export const teamRecord = z.object({
  id: idResponse,
  name: z.string(),
  description: z.string().nullable(),
  createdByUser: z.object({ id: idResponse, userId: idResponse, name: z.string(), email: emailResponse }),
  orgId: idResponse,
  memberCount: z.int(),
  members: z.array(memberRecord),
  createdAtTimestamp: milliseconds,
  updatedAtTimestamp: milliseconds,
  canEdit: z.boolean(),
  canDelete: z.boolean(),
  canManageMembers: z.boolean(),
});
components.add(teamRecord, { id: 'Team' });

/** First fields of every response of the team directory. */
export const success = { status: z.literal('success'), message: z.string() };

/** Returns the first fields of a response. */
export function succeeded(message: string): { readonly status: 'success'; readonly message: string } {
  return { status: 'success', message };
}

/** Response with one team. */
export const teamResponse = z.object({ ...success, team: teamRecord });
components.add(teamResponse, { id: 'TeamResponse' });

/** The rows of members that are named. */
export function toMemberRows(
  teamId: string,
  named: readonly NamedMember[],
  joinedAtMs: (userId: string) => number,
): NewRow<'team_members'>[] {
  return named.map(({ userId, role }) => ({
    team_id: teamId,
    user_id: userId,
    role,
    joined_at: joinedAtMs(userId),
  }));
}

/** Returns the rights of a user in a team; `role` is `null` for a user who isn't in it. Rules: TEAM-19, TEAM-20. */
function rightsOf(role: TeamRole | null, isAdmin: boolean) {
  const isOwner = role === 'OWNER';
  return {
    canRead: role !== null || isAdmin,
    canEdit: isOwner || role === 'WRITER',
    canDelete: isOwner || isAdmin,
    canManageMembers: isOwner,
  };
}

/**
 * Returns the team, if the caller has the right. Throws `notFound` for a caller who may not even read it, and
 * `teamRightMissing` for the others. Rule: TEAM-21.
 */
export function requireRight<T extends { readonly role: TeamRole | null }>(
  team: T | undefined,
  isAdmin: boolean,
  right: keyof ReturnType<typeof rightsOf>,
): T {
  const rights = rightsOf(team?.role ?? null, isAdmin);
  if (!team || !rights.canRead) throw new ApiError('notFound');
  if (!rights[right]) throw new ApiError('teamRightMissing');
  return team;
}

/** Converts a member of a team to the returned form. */
export function toMemberRecord({ userId, userName, userEmail, role, joinedAtMs }: TeamMember) {
  return { id: userId, userId, userName, userEmail, role, joinedAt: joinedAtMs, isOwner: role === 'OWNER' };
}

/** The members of each of some teams, in the order in which they come. */
export function byTeam<T extends TeamMember>(members: readonly T[]): (teamId: string) => readonly T[] {
  const found = new Map<string, T[]>();
  for (const member of members) {
    const others = found.get(member.teamId);
    if (others) others.push(member);
    else found.set(member.teamId, [member]);
  }
  return (teamId) => found.get(teamId) ?? [];
}

/** Returns the number of members of a team in a list, which are all counted on each of them. */
export function countOf(members: readonly { readonly memberCount: number }[]): number {
  return members[0]?.memberCount ?? 0;
}

/**
 * A team as it goes out, with some of its members or all.
 * @param memberCount of the whole team; without it, `members` are all there are
 */
export function toTeamRecord(
  team: FoundTeam,
  { members, memberCount = members.length }: { readonly members: readonly TeamMember[]; readonly memberCount?: number },
  { isAdmin }: { readonly isAdmin: boolean },
): z.output<typeof teamRecord> {
  const { canEdit, canDelete, canManageMembers } = rightsOf(team.role, isAdmin);
  const { created_by: creatorId, creatorName: name, creatorEmail: email } = team;
  return {
    id: team.id,
    name: team.name,
    description: team.description,
    createdByUser: { id: creatorId, userId: creatorId, name, email },
    orgId: team.org_id,
    memberCount,
    members: members.map(toMemberRecord),
    createdAtTimestamp: team.created_at,
    updatedAtTimestamp: team.updated_at,
    canEdit,
    canDelete,
    canManageMembers,
  };
}
