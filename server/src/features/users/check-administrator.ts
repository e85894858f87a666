import { z } from 'zod';
import { ApiError } from '../../base/errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id, messageResponse } from '../../http/schemas.ts';
import { selectActiveUserRecord } from './user-store.ts';

/** Rule: USER-41. */
export const checkAdministrator = endpoint({
  method: 'GET',
  path: '/users/:id/adminCheck',
  tag: 'Users',
  summary: 'Whether the caller is an administrator',
  policy: { who: 'admin', scope: 'user:read' },
  params: z.object({ id }),
  response: { 200: messageResponse },
  async handle({ db }, { caller: { orgId }, params: { id } }) {
    const record = await db.first(selectActiveUserRecord, { id });
    if (record?.orgId !== orgId) throw new ApiError('notFound');
    return { message: 'You are an administrator' };
  },
});
