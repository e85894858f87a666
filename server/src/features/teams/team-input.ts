import { z } from 'zod';
import { ApiError, type InputProblem, refuseInput } from '../../base/errors.ts';
import { id } from '../../http/schemas.ts';
import { foldCase, plainText } from '../../text/plain-text.ts';

const membersMax = 1_000;
/** Problems that an error names, at most. */
export const namedMax = 20;

/** Roles of a user in a team. Rule: TEAM-19. */
export const roles = ['OWNER', 'WRITER', 'READER'] as const;
/** Role of a user in a team. Rule: TEAM-19. */
export type TeamRole = (typeof roles)[number];

/** A user who is to be in a team. */
export interface NamedMember {
  readonly userId: string;
  readonly role: TeamRole;
}

/**
 * A team id in a path. A connector backend gives its teams ids of its own, which it gets back unchanged; `.` and `..`
 * would name another address of it. Rule: FIT-70.
 */
export const teamId = z
  .string()
  .regex(/^[A-Za-z0-9._:-]{1,128}$/, 'must be 1 to 128 letters, digits and any of . _ : -')
  .refine((given) => given !== '.' && given !== '..', 'must not be . or ..')
  .describe('Of the team');

/** Returns a team id of the built-in directory. Throws `invalidInput` for what only a connector backend can know. */
export function ownTeamId(given: string): string {
  const { success, data } = id.safeParse(given);
  if (!success) throw refuseInput({ field: 'params.id', message: 'must be 24 hexadecimal characters' });
  return data;
}

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

const textMax = 128;

/**
 * Members in a request, in a field that a connector backend may read in its own way: users and roles may be unknown here.
 * The built-in directory takes what `ownLists` does. Rules: FIT-73, TEAM-29.
 */
export const givenMembers = z
  .array(z.looseObject({ userId: z.string().max(textMax), role: z.string().max(textMax) }))
  .max(membersMax)
  .meta({ examples: [[{ userId: '0123456789abcdef01234567', role: 'READER' }]] });

/** User ids in such a field. */
export const givenUserIds = z
  .array(z.string().max(textMax))
  .max(membersMax)
  .meta({ examples: [['0123456789abcdef01234567']] });

/** Search text of the team directory, not folded yet: a backend gets it unchanged. */
export const directorySearch = plainText({ min: 0 }).optional();

/** Returns the folded search text for the built-in directory. */
export function foldedSearch({ search }: { readonly search?: string | undefined }): string | undefined {
  return search && foldCase(search);
}

/**
 * Returns the validated query of a list as a backend gets it: the parameters that were given, and nothing else. Rules:
 * TEAM-4, FIT-71.
 */
export function sentQuery(query: Readonly<Record<string, string | number | undefined>>): Record<string, string> {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]));
}

function refuseCount(field: string): ApiError {
  const message = `must have at most ${membersMax} items, the creator of the team included`;
  return refuseInput({ field: `body.${field}`, message });
}

/**
 * Returns the members of a new team: the named ones, and its creator as its owner, whatever the list says. Rule:
 * TEAM-18.
 */
export function withCreator(named: readonly NamedMember[], creatorId: string): NamedMember[] {
  const others = named.filter(({ userId }) => userId !== creatorId);
  if (others.length >= membersMax) throw refuseCount('members');
  return [{ userId: creatorId, role: 'OWNER' }, ...others];
}

/** Throws `teamOwnerNeeded` where the team would have no owner. Rule: TEAM-23. */
export function requireOwner(named: readonly NamedMember[]): void {
  if (!named.some(({ role }) => role === 'OWNER')) throw new ApiError('teamOwnerNeeded');
}

function refuseAll(problems: readonly InputProblem[]): void {
  if (problems.length > 0) throw refuseInput(...problems.slice(0, namedMax));
}

/**
 * Throws `invalidInput`, naming the unknown ones, unless all named users exist. Rule: TEAM-24.
 * @param field of the body that names them
 */
export function requireAllKnown(named: readonly NamedMember[], knownIds: readonly string[], field: string): void {
  const known = new Set(knownIds);
  const problems = named.flatMap(({ userId }, place): InputProblem[] =>
    known.has(userId) ? [] : [{ field: `body.${field}.${place}.userId`, message: `${userId} does not exist` }],
  );
  refuseAll(problems);
}

/** Change of who is in a team: the whole new list, or what becomes of some members. */
export interface MemberChange {
  readonly members?: readonly NamedMember[] | undefined;
  readonly addUserRoles?: readonly NamedMember[] | undefined;
  readonly updateUserRoles?: readonly NamedMember[] | undefined;
  readonly removeUserIds?: readonly string[] | undefined;
}

/** Returns whether a change says anything about who is in a team. */
export function changesMembers(change: MemberChange): boolean {
  const { members, addUserRoles, updateUserRoles, removeUserIds } = change;
  return [members, addUserRoles, updateUserRoles, removeUserIds].some((list) => list !== undefined);
}

/** The users that the lists of a change name, each with its place in the body. */
function namedIn({ addUserRoles = [], updateUserRoles = [], removeUserIds = [] }: MemberChange) {
  return [
    ...addUserRoles.map(({ userId }, place) => ({ userId, field: `body.addUserRoles.${place}.userId` })),
    ...updateUserRoles.map(({ userId }, place) => ({ userId, field: `body.updateUserRoles.${place}.userId` })),
    ...removeUserIds.map((userId, place) => ({ userId, field: `body.removeUserIds.${place}` })),
  ];
}

/** Throws `invalidInput` for a change that contradicts itself: which list counted would be a guess. Rule: FIT-73. */
export function requireOneMeaning(change: MemberChange): void {
  const seen = new Set<string>();
  const problems = namedIn(change).flatMap(({ userId, field }): InputProblem[] => {
    if (change.members) return [{ field, message: 'cannot be given together with members' }];
    if (seen.has(userId)) return [{ field, message: 'is named twice' }];
    seen.add(userId);
    return [];
  });
  refuseAll(problems);
}

/**
 * Returns the members of a team after a change. Throws `invalidInput` for a change or a removal of a user who is not in
 * the team, and for too many members. Rule: FIT-73.
 */
export function changedMembers(present: readonly NamedMember[], change: MemberChange): readonly NamedMember[] {
  const { members, addUserRoles = [], updateUserRoles = [], removeUserIds = [] } = change;
  if (members) return members;
  const roleOf = new Map(present.map(({ userId, role }) => [userId, role]));
  const strangers = namedIn({ updateUserRoles, removeUserIds }).filter(({ userId }) => !roleOf.has(userId));
  refuseAll(strangers.map(({ userId, field }) => ({ field, message: `${userId} is not in the team` })));
  for (const userId of removeUserIds) roleOf.delete(userId);
  for (const { userId, role } of [...addUserRoles, ...updateUserRoles]) roleOf.set(userId, role);
  if (roleOf.size > membersMax) throw refuseCount('addUserRoles');
  return [...roleOf].map(([userId, role]) => ({ userId, role }));
}
