import { z } from 'zod';
import { ApiError } from '../../base/errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id, idResponse } from '../../http/schemas.ts';
import { emailResponse } from '../../text/email-address.ts';
import { selectAnyUserById } from './user-store.ts';

/** Rules: ADDRESS-15, SERVICE-4. */
export const getInternalUser = endpoint({
  method: 'GET',
  path: '/users/internal/:id',
  tag: 'Services',
  summary: 'Get one user, deleted or not',
  policy: { who: 'service', scope: 'USER_LOOKUP' },
  params: z.object({ id }),
  response: {
    200: z.object({
      _id: idResponse,
      fullName: z.string(),
      email: emailResponse,
      orgId: idResponse,
      hasLoggedIn: z.boolean(),
      isDeleted: z.boolean(),
    }),
  },
  async handle({ db }, { params: { id } }) {
    const user = await selectAnyUserById(db.read, id);
    if (!user) throw new ApiError('notFound');
    return {
      _id: user.id,
      fullName: user.full_name,
      email: user.recovery_email ?? user.email,
      orgId: user.org_id,
      hasLoggedIn: user.has_logged_in === 1,
      isDeleted: user.is_deleted === 1,
    };
  },
});
