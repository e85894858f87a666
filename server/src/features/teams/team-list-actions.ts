import { z } from 'zod';
import { refuseInput } from '../../base/errors.ts';
import { problemsOf, wording } from '../../http/input.ts';
import { idsOrNone } from '../../http/schemas.ts';
import { namedMax, namedMembers } from './team-input.ts';

const listsOfOwn = z.object({
  userRoles: namedMembers.optional(),
  addUserRoles: namedMembers.optional(),
  updateUserRoles: namedMembers.optional(),
  removeUserIds: idsOrNone.optional(),
});

/** Returns the lists of a request as the built-in directory takes them. Throws `invalidInput`. Rule: FIT-73. */
export function ownLists(given: Readonly<Record<string, unknown>>): z.output<typeof listsOfOwn> {
  const { success, data, error } = listsOfOwn.safeParse(given, { error: wording });
  if (success) return data;
  throw refuseInput(...problemsOf('body', error).slice(0, namedMax));
}
