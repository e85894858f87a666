import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { ApiError } from '../../base/errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { restoreDeletedUser } from './public.ts';
import { toUserRecord, userRecord } from './user.ts';
import { selectAnyUserById } from './user-store.ts';

/** Rules: USER-39, USER-40. */
export const restoreUser = endpoint({
  method: 'POST',
  path: '/users/:id/restore',
  tag: 'Users',
  summary: 'Bring a deleted user back, without any of the credentials that the user had',
  errors: [409],
  policy: { who: 'admin', scope: 'user:invite' },
  tool: { name: 'restore_user', title: 'Restore a deleted user' },
  params: z.object({ id: id.describe('Of the user') }),
  response: { 200: userRecord },
  async handle(services, { caller, write, params: { id }, origin }) {
    const { orgId } = caller;
    const user = await write(async (tx) => {
      const deleted = await selectAnyUserById(tx, id);
      if (deleted?.org_id !== orgId) throw new ApiError('notFound');
      if (!deleted.is_deleted) throw new ApiError('userActive');
      const { user, revokedTokens } = await restoreDeletedUser(tx, services, { deleted, by: caller, origin });
      const changes = { isDeleted: { before: true, after: false } };
      const record = { action: 'user.restored', orgId, actor: caller, subjectId: id, origin, changes } as const;
      await appendAudit(tx, services, { ...record, details: { revokedTokens } });
      return user;
    });
    return toUserRecord(user);
  },
});
