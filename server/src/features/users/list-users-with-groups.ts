import { z } from 'zod';
import { endpoint, StreamedList } from '../../http/endpoint.ts';
import { idResponse, listQuery } from '../../http/schemas.ts';
import { emailResponse } from '../../text/email-address.ts';
import { mergeMemberships } from './membership.ts';
import { selectMemberships } from './user-store.ts';

const groups = z.array(z.object({ name: z.string(), type: z.string() }));

/** Rule: USER-19. */
export const listUsersWithGroups = endpoint({
  method: 'GET',
  path: '/users/fetch/with-groups',
  tag: 'Users',
  summary: 'List the active users, each with the groups it is in, in order of creation',
  policy: { who: 'member', scope: 'user:read' },
  costs: 'read',
  query: listQuery({}),
  response: {
    200: z.array(
      z.object({
        _id: idResponse,
        userId: idResponse,
        orgId: idResponse,
        fullName: z.string(),
        email: emailResponse,
        hasLoggedIn: z.boolean(),
        groups,
      }),
    ),
  },
  async handle({ db }, { caller: { orgId, userId } }) {
    return new StreamedList(mergeMemberships(db.batches(selectMemberships(db.read, orgId), userId)));
  },
});
