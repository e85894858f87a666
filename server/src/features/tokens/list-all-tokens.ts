import { z } from 'zod';
import { userSearch } from '../../db/members/user-search.ts';
import { endpoint } from '../../http/endpoint.ts';
import { pageMax, pageOf } from '../../http/paging.ts';
import { id, listQuery, queryNumber } from '../../http/schemas.ts';
import { searchText } from '../../text/plain-text.ts';
import { listTokens } from './public.ts';
import { adminTokenItem } from './token.ts';

const limitMax = 100;

/** Rules: PAT-18 to PAT-23. */
export const listAllTokens = endpoint({
  method: 'GET',
  path: '/personal-access-tokens/admin',
  tag: 'Personal access tokens',
  summary: 'List the tokens of all users, those of removed owners included',
  policy: { who: 'admin', scope: 'token:admin', adminFirst: true },
  costs: 'read',
  tool: {
    name: 'list_all_tokens',
    title: "List all users' access tokens",
    query: { limit: '25' },
    description:
      'Lists the personal access tokens of all users, those of removed owners included, newest first, a page at a time (25 by ' +
      'default).',
  },
  query: listQuery({
    page: queryNumber({ min: 1, max: pageMax }).default(1).describe('Which page, from 1 on'),
    limit: queryNumber({ min: 1, max: limitMax }).default(limitMax).describe('How many tokens a page has'),
    status: z
      .enum(['active', 'expired', 'revoked', 'all'])
      .default('active')
      .describe('Only tokens in this state; one that was revoked and would have expired since is revoked'),
    userId: id.optional().describe('Only tokens of this owner'),
    search: searchText.describe(
      "Only tokens with this text in their name or in their owner's name or e-mail address, in any case",
    ),
  }),
  response: {
    200: z.object({
      data: z.array(adminTokenItem),
      pagination: z.object({ page: z.int(), limit: z.int(), total: z.int(), totalPages: z.int() }),
    }),
  },
  async handle({ db, clock }, { caller: { orgId }, query: { page, limit, status, userId, search: text } }) {
    const search = await userSearch(db.read, orgId, text);
    const filter = { orgId, nowMs: clock.now(), status, userId, search };
    const { total, tokens } = await listTokens(db.read, filter, pageOf({ page, limit, search: text }));
    return {
      data: tokens,
      pagination: { page, limit, total, totalPages: Math.ceil(total / limit) },
    };
  },
});
