import { appendAudit } from '../../audit-log/audit-log.ts';
import { endpoint } from '../../http/endpoint.ts';
import { messageResponse } from '../../http/schemas.ts';
import { selectGroupsByIds } from './group-store.ts';
import { insertMissingMembers, selectActiveIds } from './member-store.ts';
import { membershipBody, requireAllKnown, requireSessionToPromote } from './membership-change.ts';

/** Rules: GROUP-14, GROUP-15, LEAVER-1. */
export const addMembers = endpoint({
  method: 'POST',
  path: '/userGroups/add-users',
  tag: 'User groups',
  summary: 'Add each of some users to each of some groups, all or nothing; to the group admin in a session only',
  policy: { who: 'admin', scope: 'usergroup:write' },
  tool: {
    name: 'add_group_members',
    title: 'Add users to groups',
    description:
      'Adds each of some users to each of some groups, all or nothing. Adding to the admin group takes a session: a personal ' +
      'access token is rejected, whatever its scopes.',
    idempotent: true,
  },
  body: membershipBody,
  response: { 200: messageResponse },
  async handle(services, { caller, write, body: { userIds, groupIds }, origin }) {
    const { orgId } = caller;
    await write(async (tx) => {
      const groups = await selectGroupsByIds(tx, orgId, groupIds);
      requireSessionToPromote(groups, caller);
      requireAllKnown({ userIds, groupIds }, { userIds: await selectActiveIds(tx, orgId, userIds), groups });
      for (const { id: subjectId } of groups) {
        const after = await insertMissingMembers(tx, subjectId, userIds);
        const record = { action: 'group.members-added', orgId, actor: caller, subjectId, origin } as const;
        // Of those who were named: who was no member before.
        const changes = { members: { before: [], after } };
        await appendAudit(tx, services, { ...record, details: { userIds }, changes });
      }
    });
    return { message: 'Users added to groups successfully' };
  },
});
