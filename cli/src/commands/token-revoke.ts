import { command } from '../command.ts';
import { CommandError } from '../failures.ts';
import { neededText, storeOptions, text } from '../options.ts';

/** Rules: CLI-15, PAT-14, PAT-16. */
export const tokenRevoke = command({
  name: 'token revoke',
  summary: "Revoke a user's personal access token, with all that descend from it",
  details: 'It cannot be undone. A running server rejects the token from the next request on.',
  examples: ['token revoke --id 0123456789abcdef01234567 --reason "Laptop lost"'],
  options: {
    ...storeOptions,
    id: neededText('token id', 'as token list prints it'),
    reason: text('text', 'why, for the audit log and the list of administrators'),
  },
  async run({ dataDir, id, reason }, context) {
    const { operator, withStore } = await import('../operator-store.ts');
    const { revokeReason, revokeToken } = await import('../../../server/src/features/tokens/public.ts');
    const { orThrow, requireOrganization } = await import('../operator-errors.ts');
    const given = revokeReason.safeParse(reason ?? '');
    if (!given.success) throw new CommandError('usage', `--reason ${given.error.issues[0]?.message}`);
    const tokenId = id.toLowerCase();
    const revoke = withStore(context, dataDir, (services) =>
      services.db.transaction(async (tx) => {
        const { id: orgId } = await requireOrganization(tx);
        const why = { ownerId: null, reason: given.data || 'Revoked by the operator', actor: null, origin: operator };
        return revokeToken(tx, services, { tokenId, orgId, ...why });
      }),
    );
    const count = await orThrow(revoke, 'noSuchToken');
    return { data: { revoked: { tokenId, count } }, text: `Revoked ${tokenId}; tokens ended in all: ${count}` };
  },
});
