import { z } from 'zod';
import { endpoint } from '../../http/endpoint.ts';
import { toUserRecord, userRecord } from './user.ts';
import { selectActiveUsers } from './user-store.ts';

/** Rule: USER-1. */
export const listUsers = endpoint({
  method: 'GET',
  path: '/users',
  tag: 'Users',
  summary: 'List the active users of the organization',
  policy: { who: 'member', scope: 'user:read' },
  response: { 200: z.array(userRecord) },
  async handle({ db }, { caller: { orgId } }) {
    const users = await selectActiveUsers(db.read, orgId);
    return users.map(toUserRecord);
  },
});
