import { z } from 'zod';
import { appendAudit } from '../../audit/audit-log.ts';
import { RefusedError } from '../../errors.ts';
import { appendEvents } from '../../events/outbox.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id, messageAnswer } from '../../http/schemas.ts';
import { isInDefaultGroup, leaveAllGroups } from '../groups/contract.ts';
import { endCredentials } from '../sessions/contract.ts';
import { leaveAllTeams } from '../teams/contract.ts';
import { deletedUser } from './user.ts';
import { selectUserById, updateUser } from './user-store.ts';

/** Rules: USER-34 to USER-38. */
export const deleteUser = endpoint({
  method: 'DELETE',
  path: '/users/:id',
  tag: 'Users',
  summary: 'Delete a user, who can be restored; nothing that the user signed in or made tokens with works any more',
  policy: { who: 'admin', scope: 'user:delete' },
  params: z.object({ id }),
  response: { 200: messageAnswer },
  async handle(services, { caller, params: { id }, origin }) {
    const { orgId } = caller;
    await services.db.transaction(async (tx) => {
      await services.confirm(tx, caller, 'admin');
      const user = await selectUserById(tx, id);
      if (user?.org_id !== orgId) throw new RefusedError('notFound');
      if (await isInDefaultGroup(tx, { orgId, userId: id, type: 'admin' })) {
        throw new RefusedError('administratorNotDeletable');
      }
      const nowMs = services.clock.now();
      await updateUser(tx, deletedUser(user, caller.userId, nowMs));
      await leaveAllGroups(tx, id);
      await leaveAllTeams(tx, services, { userId: id, orgId, actor: caller, origin });
      await endCredentials(tx, { userId: id, nowMs });
      const payload = { orgId, userId: id, email: user.email };
      await appendEvents(tx, services, [{ eventType: 'userDeleted', payload }]);
      await appendAudit(tx, services, { action: 'user.deleted', orgId, actor: caller, subjectId: id, origin });
    });
    return { message: 'User deleted successfully' };
  },
});
