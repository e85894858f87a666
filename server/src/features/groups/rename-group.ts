import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { ApiError } from '../../base/errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { foldCase, plainText } from '../../text/plain-text.ts';
import { groupRecord, requireChangeable, toGroupRecord } from './group.ts';
import { selectGroup, selectGroupByName, updateGroup } from './group-store.ts';
import { memberIds } from './member-store.ts';

/** Rules: GROUP-3, GROUP-11. */
export const renameGroup = endpoint({
  method: 'PUT',
  path: '/userGroups/:groupId',
  tag: 'User groups',
  summary: 'Rename a group',
  errors: [409],
  policy: { who: 'admin', scope: 'usergroup:write' },
  tool: { name: 'rename_group', title: 'Rename a group' },
  params: z.object({ groupId: id.describe('Of the group') }),
  body: z.object({
    name: plainText()
      .describe('No other group may have it, in any case')
      .meta({ examples: ['Research'] }),
  }),
  response: { 200: groupRecord },
  async handle(services, { caller, write, params: { groupId }, body: { name }, origin }) {
    const { orgId } = caller;
    return write(async (tx) => {
      const before = requireChangeable(await selectGroup(tx, orgId, groupId));
      const name_key = foldCase(name);
      const namesake = await selectGroupByName(tx, orgId, name_key);
      if (namesake && namesake.id !== groupId) throw new ApiError('groupNameTaken');
      const after = { ...before, name, name_key, updated_at: services.clock.now() };
      await updateGroup(tx, after);
      const record = { action: 'group.renamed', orgId, actor: caller, subjectId: groupId, origin } as const;
      await appendAudit(tx, services, { ...record, changes: changesBetween({ name: before.name }, { name }) });
      const members = await memberIds(tx, groupId).execute();
      return toGroupRecord(
        after,
        members.map((row) => row.user_id),
      );
    });
  },
});
