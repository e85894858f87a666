import { z } from 'zod';
import { endpoint } from '../../http/endpoint.ts';
import { listQuery } from '../../http/schemas.ts';
import { tokenItem, toTokenItem } from './token.ts';
import { selectActiveTokens } from './token-store.ts';

const shownMax = 100;

/** Rules: PAT-10, PAT-11, PAT-12, PAT-30. */
export const listTokens = endpoint({
  method: 'GET',
  path: '/personal-access-tokens',
  tag: 'Personal access tokens',
  summary: "List the caller's own active tokens, newest first, at most 100",
  policy: { who: 'member', scope: 'token:read' },
  tool: { name: 'list_my_tokens', title: 'List my access tokens' },
  query: listQuery({}),
  response: { 200: z.object({ tokens: z.array(tokenItem) }) },
  async handle({ db, clock }, { caller: { userId } }) {
    const tokens = await selectActiveTokens(db.read, { userId, nowMs: clock.now(), limit: shownMax });
    return { tokens: tokens.map(toTokenItem) };
  },
});
