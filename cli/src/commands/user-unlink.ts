import { command } from '../command.ts';
import { neededText, storeOptions } from '../options.ts';

/** Rules: CLI-15, FIT-8. */
export const userUnlink = command({
  name: 'user unlink',
  summary: 'Forget which identities at the provider of single sign-on a user is linked to',
  details:
    'Ends all sessions of the user, too; personal access tokens still work. The next user whom the provider sends with the ' +
    'verified address of the account is linked to it: check the address first. A running server applies it from the next ' +
    'request on.',
  examples: ['user unlink --user 0123456789abcdef01234567'],
  options: { ...storeOptions, user: neededText('user id', 'of the user') },
  async run({ dataDir, user }, context) {
    const { operator, operatorConfig, withConfiguredStore } = await import('../operator-store.ts');
    const { unlinkUser } = await import('../../../server/src/features/sso/public.ts');
    const { orThrow, requireOrganization } = await import('../operator-errors.ts');
    const userId = user.toLowerCase();
    const config = operatorConfig(context, dataDir);
    const unlink = withConfiguredStore(config, (services) =>
      services.db.transaction(async (tx) => {
        const { id: orgId } = await requireOrganization(tx);
        const who = { userId, orgId, by: null, guard: null, origin: operator };
        return unlinkUser(tx, { ...services, config }, who);
      }),
    );
    const { unlinked, ended } = await orThrow(unlink, 'noSuchUser');
    const text = `Unlinked ${userId}; links forgotten: ${unlinked}, sessions ended: ${ended}`;
    return { data: { userId, unlinked, ended }, text };
  },
});
