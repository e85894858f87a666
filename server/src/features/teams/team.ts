import { z } from 'zod';
import { ApiError, type InputProblem, refuseInput } from '../../base/errors.ts';
import type { NewRow } from '../../db/schema/tables.ts';
import { id, idResponse } from '../../http/schemas.ts';
import { emailResponse } from '../../text/email-address.ts';
import { foldCase, plainText } from '../../text/plain-text.ts';

const membersMax = 1_000;
const namedMax = 20;

const roles = ['OWNER', 'WRITER', 'READER'] as const;
/** Role of a user in a team. Rule: TEAM-19. */
export type TeamRole = (typeof roles)[number];

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

/** A member of a team, with name and address. */
export interface TeamMember {
  readonly teamId: string;
  readonly userId: string;
  readonly userName: string;
  readonly userEmail: string;
  readonly role: TeamRole;
  readonly joinedAtMs: number;
}

/** A user who is to be in a team. */
export interface NamedMember {
  readonly userId: string;
  readonly role: TeamRole;
}

/** The caller. */
interface Caller {
  readonly userId: string;
  readonly isAdmin: boolean;
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

/** A team as returned, with all its members by name, and the caller's rights. Rule: TEAM-15. */
export const teamRecord = z.object({
  id: idResponse,
  name: z.string(),
  description: z.string().nullable(),
  createdByUser: idResponse,
  orgId: idResponse,
  memberCount: z.int(),
  members: z.array(memberRecord),
  createdAtTimestamp: milliseconds,
  updatedAtTimestamp: milliseconds,
  canEdit: z.boolean(),
  canDelete: z.boolean(),
  canManageMembers: z.boolean(),
});

/** First fields of every response of the team directory. */
export const success = { status: z.literal('success'), message: z.string() };

/** Returns the first fields of a response. */
export function succeeded(message: string): { readonly status: 'success'; readonly message: string } {
  return { status: 'success', message };
}

/** Response with one team. */
export const teamResponse = z.object({ ...success, team: teamRecord });

/** A team's name in a request. */
export const teamName = plainText().meta({ examples: ['Research'] });

/** Members of a team in a request, without duplicates. */
export const namedMembers = z
  .array(z.object({ userId: id, role: z.enum(roles) }))
  .max(membersMax)
  .superRefine((named, context) => {
    const seen = new Set<string>();
    for (const [place, { userId }] of named.entries()) {
      if (seen.has(userId)) context.addIssue({ code: 'custom', path: [place, 'userId'], message: 'is named twice' });
      seen.add(userId);
    }
  })
  .meta({ examples: [[{ userId: '0123456789abcdef01234567', role: 'READER' }]] });

/** Search text of the team directory, not folded yet: a backend gets it unchanged. */
export const directorySearch = plainText({ min: 0 }).optional();

/** Returns the folded search text for the built-in directory. */
export function foldedSearch({ search }: { readonly search?: string | undefined }): string | undefined {
  return search && foldCase(search);
}

/**
 * Returns the parts of a validated query that a backend gets: these three as far as they were given, and nothing else.
 * Rule: TEAM-4.
 */
export function sentQuery({
  page,
  limit,
  search,
}: {
  readonly page?: number | undefined;
  readonly limit?: number | undefined;
  readonly search?: string | undefined;
}): Record<string, string> {
  const given = Object.entries({ page, limit, search }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]));
}

/**
 * Returns the members of a new team: the named ones, and its creator as its owner, whatever the list says. Rule:
 * TEAM-18.
 */
export function withCreator(named: readonly NamedMember[], creatorId: string): NamedMember[] {
  const others = named.filter(({ userId }) => userId !== creatorId);
  if (others.length >= membersMax) {
    const message = `must have at most ${membersMax} items, the creator of the team included`;
    throw refuseInput({ field: 'body.members', message });
  }
  return [{ userId: creatorId, role: 'OWNER' }, ...others];
}

/** Throws `teamOwnerNeeded` where the team would have no owner. Rule: TEAM-23. */
export function requireOwner(named: readonly NamedMember[]): void {
  if (!named.some(({ role }) => role === 'OWNER')) throw new ApiError('teamOwnerNeeded');
}

/** Throws `invalidInput`, naming the unknown ones, unless all named users exist. Rule: TEAM-24. */
export function requireAllKnown(named: readonly NamedMember[], knownIds: readonly string[]): void {
  const known = new Set(knownIds);
  const problems = named.flatMap(({ userId }, place): InputProblem[] =>
    known.has(userId) ? [] : [{ field: `body.members.${place}.userId`, message: `${userId} does not exist` }],
  );
  if (problems.length > 0) throw refuseInput(...problems.slice(0, namedMax));
}

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

/** A team in a list: of its members those that are given, and how many there are. */
export function toListedTeam(
  { role, ...team }: StoredTeam & { readonly role: TeamRole },
  members: readonly (TeamMember & { readonly memberCount: number })[],
  caller: Caller,
): z.output<typeof teamRecord> {
  const { canEdit, canDelete, canManageMembers } = rightsOf(role, caller.isAdmin);
  const memberCount = members[0]?.memberCount ?? 0;
  return { ...toTeamRecord(team, members, caller), memberCount, canEdit, canDelete, canManageMembers };
}

/** A team as it goes out. */
export function toTeamRecord(
  team: StoredTeam,
  members: readonly TeamMember[],
  caller: Caller,
): z.output<typeof teamRecord> {
  const role = members.find(({ userId }) => userId === caller.userId)?.role ?? null;
  const { canEdit, canDelete, canManageMembers } = rightsOf(role, caller.isAdmin);
  return {
    id: team.id,
    name: team.name,
    description: team.description,
    createdByUser: team.created_by,
    orgId: team.org_id,
    memberCount: members.length,
    members: members.map(toMemberRecord),
    createdAtTimestamp: team.created_at,
    updatedAtTimestamp: team.updated_at,
    canEdit,
    canDelete,
    canManageMembers,
  };
}
