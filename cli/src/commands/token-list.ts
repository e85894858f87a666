import { command } from '../command.ts';
import { oneOf, storeOptions, text, wholeNumber } from '../options.ts';

const statuses = ['active', 'expired', 'revoked', 'all'] as const;

const columns = ['ID', 'STATE', 'OWNER', 'NAME', 'EXPIRES', 'LAST USED', 'SCOPES'] as const;

/** Returns rows under a heading, each column as wide as its longest cell; the last one is not filled up. */
function table(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = columns.map((_, place) => Math.max(...rows.map((row) => row[place]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, place) => cell.padEnd(widths[place] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** Rules: FIT-104, CLI-15, PAT-18 to PAT-23. */
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
    const { systemClock } = await import('../../../server/src/base/clock.ts');
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
    const nowMs = systemClock.now();
    const stateOf = ({ revokedAt, expiresAt }: (typeof tokens)[number]) => {
      if (revokedAt !== undefined) return 'revoked';
      return expiresAt !== 'Never' && Date.parse(expiresAt) <= nowMs ? 'expired' : 'active';
    };
    const rows = tokens.map((token) => {
      const { id, ownerEmail, name, scopes, expiresAt, lastUsedAt } = token;
      return [id, stateOf(token), ownerEmail, name, expiresAt, lastUsedAt ?? 'Never', scopes.join(',')];
    });
    const lines = rows.length === 0 ? [] : table([columns, ...rows]);
    const more = total > tokens.length ? [`and ${total - tokens.length} more: --limit shows more of them`] : [];
    return { data: { total, tokens }, text: [...lines, ...more].join('\n') || 'There is none' };
  },
});
