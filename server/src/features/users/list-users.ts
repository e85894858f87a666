import { z } from 'zod';
import { userSearch } from '../../db/members/user-search.ts';
import { endpoint, StreamedList } from '../../http/endpoint.ts';
import { pageOf, pageQuery, pagination, toPagination } from '../../http/paging.ts';
import { components, id, listQuery } from '../../http/schemas.ts';
import { searchText } from '../../text/plain-text.ts';
import { listedUser, toListedUser } from './listed-user.ts';
import { recordFor, type StoredUser, toUserRecord, userRecord } from './user.ts';
import { countUsers, selectActiveUsers, selectGroupsOf, selectUserPage } from './user-store.ts';

const groupIdsMax = 100;

const groupIds = z
  .string()
  .transform((text) => text.split(','))
  .pipe(z.array(id).max(groupIdsMax))
  .optional()
  .describe('Ids of groups, separated by commas: only members of one of them');

const userPage = z.object({ users: z.array(listedUser), pagination }).register(components, { id: 'UserPage' });

/** Rules: USER-1, USER-14 to USER-18, FIT-76. */
export const listUsers = endpoint({
  method: 'GET',
  path: '/users',
  tag: 'Users',
  summary: 'List the active users: all of them in order of creation, or with any of the parameters one page',
  policy: { who: 'member', scope: 'user:read' },
  costs: 'read',
  tool: {
    name: 'list_users',
    title: 'List or search users',
    query: { page: '1' },
    lists: { groupIds: 'Ids of groups: only members of one of them' },
    response: userPage,
    description:
      'Lists active users, a page at a time: search looks in names and e-mail addresses, groupIds and hasLoggedIn narrow it down. ' +
      'Use it to find the id of a user by name or address.',
  },
  query: listQuery({
    ...pageQuery,
    search: searchText.describe('Only users with this text in their name or e-mail address, in any case'),
    sortBy: z.enum(['fullName', 'email', 'createdAt']).optional().meta({ default: 'fullName' }),
    sortOrder: z.enum(['asc', 'desc']).optional().meta({ default: 'asc' }),
    hasLoggedIn: z
      .enum(['true', 'false'])
      .transform((text) => text === 'true')
      .optional()
      .describe('Only users who have signed in, or who have not'),
    isBlocked: z
      .enum(['true', 'false'])
      .optional()
      .describe('Sent by earlier clients. No user is ever blocked, so true leaves none and false leaves all'),
    groupIds,
  }),
  response: { 200: z.union([z.array(userRecord), userPage]) },
  async handle({ db }, { caller, query: { isBlocked, ...query } }) {
    const { orgId, userId } = caller;
    const toRecord = (user: StoredUser) => recordFor(caller, toUserRecord(user));
    const isPaged = Object.values(query).some((value) => value !== undefined);
    if (isBlocked === 'true') return isPaged ? { users: [], pagination: toPagination(pageOf(query), 0) } : [];
    if (!isPaged) {
      return new StreamedList(StreamedList.map(db.batches(selectActiveUsers(db.read, orgId), userId), toRecord));
    }
    const { hasLoggedIn, groupIds, sortBy = 'fullName', sortOrder = 'asc' } = query;
    const search = await userSearch(db.read, orgId, query.search);
    const filter = { orgId, search, hasLoggedIn, groupIds };
    const page = pageOf(query);
    const totalCount = await countUsers(db.read, filter);
    const users = await selectUserPage(db.read, filter, { ...page, sortBy, sortOrder });
    const groups = await selectGroupsOf(
      db.read,
      users.map(({ id }) => id),
    );
    const items = users.map((user) => toListedUser(toRecord(user), user, groups));
    return { users: items, pagination: toPagination(page, totalCount) };
  },
});
