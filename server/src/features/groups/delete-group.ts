import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { groupRecord, requireChangeable, toGroupRecord } from './group.ts';
import { selectGroup, updateGroup } from './group-store.ts';
import { deleteAllMembers } from './member-store.ts';

/** Rule: GROUP-12. */
export const deleteGroup = endpoint({
  method: 'DELETE',
  path: '/userGroups/:groupId',
  tag: 'User groups',
  summary: 'Delete a group and its memberships',
  policy: { who: 'admin', scope: 'usergroup:write' },
  tool: { name: 'delete_group', title: 'Delete a group' },
  params: z.object({ groupId: id.describe('Of the group') }),
  response: { 200: groupRecord },
  async handle(services, { caller, write, params: { groupId }, origin }) {
    const { orgId } = caller;
    const group = await write(async (tx) => {
      const before = requireChangeable(await selectGroup(tx, orgId, groupId));
      const after = { ...before, is_deleted: 1 as const, updated_at: services.clock.now() };
      await updateGroup(tx, after);
      await deleteAllMembers(tx, groupId);
      const record = { action: 'group.deleted', orgId, actor: caller, subjectId: groupId, origin } as const;
      const changes = { isDeleted: { before: false, after: true } };
      await appendAudit(tx, services, { ...record, details: { name: before.name }, changes });
      return after;
    });
    return toGroupRecord(group, []);
  },
});
