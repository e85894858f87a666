import { z } from 'zod';
import { ApiError } from '../../base/errors.ts';
import { selectUserById } from '../../db/members/users.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { emailResponse } from '../../text/email-address.ts';

/** Rule: ADDRESS-11. */
export const getEmail = endpoint({
  method: 'GET',
  path: '/users/:id/email',
  operationId: 'getUserEmail',
  tag: 'Users',
  summary: 'Get the e-mail address of a user',
  policy: { who: 'adminOrSelf', scope: 'user:read' },
  params: z.object({ id: id.describe('Of the user') }),
  response: { 200: z.object({ email: emailResponse }) },
  async handle({ db }, { caller: { orgId }, params: { id } }) {
    const user = await selectUserById(db.read, id);
    if (user?.orgId !== orgId) throw new ApiError('notFound');
    return { email: user.email };
  },
});
