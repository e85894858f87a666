import { z } from 'zod';
import type { Principal } from '../../access/principal.ts';
import { ApiError, type InputProblem, refuseInput, refuseScope } from '../../base/errors.ts';
import { id } from '../../http/schemas.ts';
import type { StoredGroup } from './group.ts';

/** Few enough that the one transaction is short. */
const pairsMax = 10_000;
const groupsMax = 100;
const namedMax = 20;

const ids = z
  .array(id)
  .min(1)
  .transform((given) => [...new Set(given)])
  .meta({ examples: [['0123456789abcdef01234567']] });

/** Users and groups of a change: each user is added to, or removed from, each group. Rules: GROUP-14, GROUP-15. */
export const membershipBody = z
  .object({
    userIds: ids,
    groupIds: ids.refine(({ length }) => length <= groupsMax, `must have at most ${groupsMax} items`),
  })
  .refine(({ userIds, groupIds }) => userIds.length * groupIds.length <= pairsMax, {
    path: ['userIds'],
    error: `must not result in more than ${pairsMax} memberships together with groupIds`,
  });

function unknown(field: 'userIds' | 'groupIds', wanted: readonly string[], known: ReadonlySet<string>): InputProblem[] {
  return wanted.flatMap((one, place) =>
    known.has(one) ? [] : [{ field: `body.${field}.${place}`, message: `${one} does not exist` }],
  );
}

/** Throws `invalidInput`, naming those that do not exist, unless all do. Rule: GROUP-15. */
export function requireAllKnown(
  wanted: { readonly userIds: readonly string[]; readonly groupIds: readonly string[] },
  known: { readonly userIds: readonly string[]; readonly groups: readonly StoredGroup[] },
): void {
  const problems = [
    ...unknown('userIds', wanted.userIds, new Set(known.userIds)),
    ...unknown('groupIds', wanted.groupIds, new Set(known.groups.map((group) => group.id))),
  ];
  if (problems.length > 0) throw refuseInput(...problems.slice(0, namedMax));
}

/** Returns whether a change concerns the group of the administrators. */
function isAboutAdministrators(groups: readonly StoredGroup[]): boolean {
  return groups.some(({ type }) => type === 'admin');
}

/**
 * Rejects a token that would make an administrator: the membership would outlive the token. Throws
 * `administratorBySession`, whatever the scopes of the token. Rule: LEAVER-1.
 */
export function requireSessionToPromote(groups: readonly StoredGroup[], caller: Principal): void {
  if (isAboutAdministrators(groups) && caller.kind === 'token') throw new ApiError('administratorBySession');
}

/** Requires `org:admin` of a token that takes users out of the `admin` group. Throws the 403 that names it. Rule: SCOPE-19. */
export function requireScopeToDemote(groups: readonly StoredGroup[], caller: Principal): void {
  if (!isAboutAdministrators(groups) || caller.kind === 'session') return;
  if (!caller.scopes.has('org:admin')) throw refuseScope(['org:admin']);
}

/** Rejects removals from `everyone`, which only deletion may do. Rule: GROUP-16. */
export function refuseLeavingEveryone(groups: readonly StoredGroup[]): void {
  if (groups.some(({ type }) => type === 'everyone')) throw new ApiError('everyoneStays');
}
