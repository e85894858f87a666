import { command } from '../command.ts';
import { neededText, storeOptions } from '../options.ts';

/** Rules: CLI-14, SERVICE-10. */
export const serviceRevoke = command({
  name: 'service revoke',
  summary: 'End a registered service and every token that it got',
  details: 'A running server rejects its tokens from the next request on.',
  examples: ['service revoke --id 0123456789abcdef01234567'],
  options: { ...storeOptions, id: neededText('client id', 'as service list prints it') },
  async run({ dataDir, id }, context) {
    const { operator, withStore } = await import('../operator-store.ts');
    const { endClient } = await import('../../../server/src/features/service-clients/public.ts');
    const { selectActiveOrganization } = await import('../../../server/src/db/members/organization.ts');
    const { orThrow } = await import('../operator-errors.ts');
    const clientId = id.toLowerCase();
    const end = withStore(context, dataDir, (services) =>
      services.db.transaction(async (tx) => {
        const orgId = (await selectActiveOrganization(tx))?.id ?? null;
        await endClient(tx, services, { clientId, orgId, actor: null, origin: operator });
      }),
    );
    await orThrow(end, 'noSuchService');
    return { data: { revoked: { clientId } }, text: `Ended ${clientId} and its tokens` };
  },
});
