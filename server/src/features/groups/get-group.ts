import { z } from 'zod';
import { ApiError } from '../../base/errors.ts';
import { endpoint, RecordWithStreamedList, StreamedList } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { groupRecord, toGroupRecord } from './group.ts';
import { selectGroup } from './group-store.ts';
import { memberIds } from './member-store.ts';

/** Rule: GROUP-9. */
export const getGroup = endpoint({
  method: 'GET',
  path: '/userGroups/:groupId',
  tag: 'User groups',
  summary: 'Get one group with the ids of its members',
  policy: { who: 'member', scope: 'usergroup:read' },
  tool: { name: 'get_group', title: 'Get a group' },
  costs: 'read',
  params: z.object({ groupId: id.describe('Of the group') }),
  response: { 200: groupRecord },
  async handle({ db }, { caller: { orgId, userId }, params: { groupId } }) {
    const group = await selectGroup(db.read, orgId, groupId);
    if (!group) throw new ApiError('notFound');
    const ids = StreamedList.map(db.batches(memberIds(db.read, groupId), userId), ({ user_id }) => user_id);
    return new RecordWithStreamedList('users', toGroupRecord(group, []), ids);
  },
});
