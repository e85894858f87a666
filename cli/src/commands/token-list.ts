import { command } from '../command.ts';
import { oneOf, storeOptions, text, wholeNumber } from '../options.ts';

const statuses = ['active', 'expired', 'revoked', 'all'] as const;

/** Rules: CLI-15, PAT-18 to PAT-23. */
export const tokenList = command({
  name: 'token list',
  summary: 'List the personal access tokens of all users, newest first',
  details: 'As administrators see them over the API: never the tokens themselves.',
  examples: ['token list', 'token list --status all --search grace --limit 20 --json'],
  options: {
    ...storeOptions,
    status: oneOf(statuses, 'active', 'which of them'),
    search: text('text', "only those with this text in their name or in their owner's name or address"),
    limit: wholeNumber({ description: 'how many at most', min: 1, max: 10_000, otherwise: 100 }),
  },
  async run({ dataDir, status, search, limit }, context) {
    const { withStore } = await import('../operator-store.ts');
    const { listTokens } = await import('../../../server/src/features/tokens/public.ts');
    const { userSearch } = await import('../../../server/src/db/members/user-search.ts');
    const { foldCase } = await import('../../../server/src/text/plain-text.ts');
    const { requireOrganization } = await import('../operator-errors.ts');
    const { total, tokens } = await withStore(context, dataDir, async ({ db, clock }) => {
      const { id: orgId } = await requireOrganization(db.read);
      const folded = search === null ? undefined : foldCase(search);
      const filter = {
        orgId,
        nowMs: clock.now(),
        status,
        userId: undefined,
        search: await userSearch(db.read, orgId, folded),
      };
      return listTokens(db.read, filter, { offset: 0, limit });
    });
    const lines = tokens.map(({ id, ownerEmail, name, expiresAt }) => `${id}  ${ownerEmail}  ${expiresAt}  ${name}`);
    const more = total > tokens.length ? [`and ${total - tokens.length} more: --limit shows more of them`] : [];
    return { data: { total, tokens }, text: [...lines, ...more].join('\n') || 'There is none' };
  },
});
