import { z } from 'zod';
import { ApiError } from '../../base/errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { recordFor, userRecord } from './user.ts';
import { selectActiveUserRecord } from './user-store.ts';

/** Rules: USER-2, USER-3. */
export const getUser = endpoint({
  method: 'GET',
  path: '/users/:id',
  tag: 'Users',
  summary: 'Get one user',
  policy: { who: 'member', scope: 'user:read' },
  tool: { name: 'get_user', title: 'Get a user' },
  params: z.object({ id: id.describe('Of the user') }),
  response: { 200: userRecord },
  async handle({ db }, { caller, params: { id } }) {
    const record = await db.first(selectActiveUserRecord, { id });
    if (record?.orgId !== caller.orgId) throw new ApiError('notFound');
    return recordFor(caller, record);
  },
});
