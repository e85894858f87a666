import { command } from '../command.ts';
import { CommandError } from '../failures.ts';
import { neededText, storeOptions } from '../options.ts';

/** Rules: CLI-14, SERVICE-7. */
export const serviceCreate = command({
  name: 'service create',
  summary: 'Register a service, and print its secret once',
  details:
    'With the printed id and secret the service gets tokens at POST /api/v1/oauth2/token. Scopes: USER_LOOKUP, FETCH_CONFIG, ' +
    'EVENTS_READ, TOKEN_INTROSPECT. The secret is stored as a hash: it cannot be shown again.',
  examples: [
    'service create --name connector --scopes USER_LOOKUP',
    'service create --name relay --scopes EVENTS_READ,FETCH_CONFIG --json',
  ],
  options: {
    ...storeOptions,
    name: neededText('name', 'name of the service'),
    scopes: neededText('list', 'its scopes, separated by commas'),
  },
  async run({ dataDir, name, scopes }, context) {
    const { operator, withStore } = await import('../operator-store.ts');
    const { readClientInput, registerClient } = await import('../../../server/src/features/service-clients/public.ts');
    const input = readClientInput({ name, scopes: scopes.split(',').map((scope) => scope.trim()) });
    if (!input) throw new CommandError('usage', '--name or --scopes is not valid; see latchkey service create --help');
    const { selectActiveOrganization } = await import('../../../server/src/db/members/organization.ts');
    const service = await withStore(context, dataDir, (services) =>
      services.db.transaction(async (tx) => {
        const orgId = (await selectActiveOrganization(tx))?.id ?? null;
        return registerClient(tx, services, { ...input, orgId, actor: null, origin: operator });
      }),
    );
    const text = `Registered ${service.name}.\nclient id:     ${service.clientId}\nclient secret: ${service.clientSecret}`;
    return { data: { service }, text };
  },
});
