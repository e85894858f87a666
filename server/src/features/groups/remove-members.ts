import { appendAudit } from '../../audit-log/audit-log.ts';
import { ApiError } from '../../base/errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { notifyAdministrators, reviewFor, reviewResponse, settleLeavers } from '../leavers/public.ts';
import { selectGroupsByIds } from './group-store.ts';
import { countMembers, deleteMembers, selectActiveIds } from './member-store.ts';
import { membershipBody, refuseLeavingEveryone, requireAllKnown, requireScopeToDemote } from './membership-change.ts';

/** Rules: GROUP-14 to GROUP-17, LEAVER-4, LEAVER-6, SCOPE-19. */
export const removeMembers = endpoint({
  method: 'POST',
  path: '/userGroups/remove-users',
  tag: 'User groups',
  summary: 'Remove each of some users from each of some groups, all or nothing',
  errors: [409],
  policy: { who: 'admin', scope: 'usergroup:write' },
  tool: {
    name: 'remove_group_members',
    title: 'Remove users from groups',
    description:
      'Removes each of some users from each of some groups, all or nothing. For the admin group org:admin is needed too.',
    destructive: true,
    idempotent: true,
  },
  body: membershipBody,
  response: { 200: reviewResponse },
  async handle(services, { caller, write, body: { userIds, groupIds }, origin }) {
    const { orgId } = caller;
    const { demoted, review } = await write(async (tx) => {
      const demoted: string[] = [];
      const groups = await selectGroupsByIds(tx, orgId, groupIds);
      requireScopeToDemote(groups, caller);
      requireAllKnown({ userIds, groupIds }, { userIds: await selectActiveIds(tx, orgId, userIds), groups });
      refuseLeavingEveryone(groups);
      for (const { id: subjectId, type } of groups) {
        const before = await deleteMembers(tx, subjectId, userIds);
        const isLeft = type !== 'admin' || (await countMembers(tx, { groupId: subjectId, search: undefined })) > 0;
        if (!isLeft) throw new ApiError('lastAdministrator');
        if (type === 'admin') demoted.push(...before);
        const record = { action: 'group.members-removed', orgId, actor: caller, subjectId, origin } as const;
        // Of those who were named: who was a member before.
        const changes = { members: { before, after: [] } };
        await appendAudit(tx, services, { ...record, details: { userIds }, changes });
      }
      return { demoted, review: await settleLeavers(tx, services, demoted) };
    });
    notifyAdministrators(services, { caller, kind: 'demoted', userIds: demoted, review });
    const message = 'Users removed from groups successfully';
    return { message, ...(demoted.length > 0 ? reviewFor(caller, review) : {}) };
  },
});
