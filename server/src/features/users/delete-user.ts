import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { notifyAdministrators, reviewForDeleted, reviewResponse, settleLeavers } from '../leavers/public.ts';
import { removeUser, requireUser } from './public.ts';

/** Rules: LEAVER-4, LEAVER-6, USER-34 to USER-38. */
export const deleteUser = endpoint({
  method: 'DELETE',
  path: '/users/:id',
  tag: 'Users',
  summary: 'Delete a user, who can be restored; the user’s sessions and tokens stop working',
  errors: [409],
  policy: { who: 'admin', scope: 'user:delete' },
  tool: { name: 'delete_user', title: 'Delete a user' },
  params: z.object({ id: id.describe('Of the user') }),
  response: { 200: reviewResponse },
  async handle(services, { caller, write, params: { id }, origin }) {
    const { orgId } = caller;
    const review = await write(async (tx) => {
      const user = await requireUser(tx, orgId, id);
      await removeUser(tx, services, { user, by: caller, origin });
      const changes = { isDeleted: { before: false, after: true } };
      const record = { action: 'user.deleted', orgId, actor: caller, subjectId: id, origin, changes } as const;
      await appendAudit(tx, services, record);
      return settleLeavers(tx, services, [id]);
    });
    notifyAdministrators(services, { caller, kind: 'deleted', userIds: [id], review });
    return { message: 'User deleted successfully', ...reviewForDeleted(caller, review) };
  },
});
