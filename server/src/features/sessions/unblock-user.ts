import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { ApiError } from '../../base/errors.ts';
import { selectUserById } from '../../db/members/users.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id, messageResponse } from '../../http/schemas.ts';
import { clearSlowDown } from '../sign-in/public.ts';

/** Rule: SESSION-10. */
export const unblockUser = endpoint({
  method: 'PUT',
  path: '/users/:id/unblock',
  tag: 'Users',
  summary: 'Let a user sign in again at once, by code too, after failed sign-ins slowed the account down',
  policy: { who: 'admin', scope: 'org:admin' },
  tool: { name: 'unblock_user', title: 'Lift the sign-in slow-down of a user', destructive: false },
  params: z.object({ id: id.describe('Of the user') }),
  response: { 200: messageResponse },
  async handle(services, { caller, write, params: { id: userId }, origin }) {
    const { orgId } = caller;
    await write(async (tx) => {
      const found = await selectUserById(tx, userId);
      if (found?.orgId !== orgId) throw new ApiError('notFound');
      await appendAudit(tx, services, { action: 'sign-in.unblocked', orgId, actor: caller, subjectId: userId, origin });
      await clearSlowDown(tx, services, { userId, email: found.email });
    });
    return { message: 'User unblocked' };
  },
});
