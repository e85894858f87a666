import { command } from '../command.ts';
import { storeOptions } from '../options.ts';

/** Rules: CLI-14, SERVICE-9. */
export const serviceList = command({
  name: 'service list',
  summary: 'List the registered services',
  details: 'Without their secrets, which only the services have.',
  examples: ['service list', 'service list --json'],
  options: storeOptions,
  async run({ dataDir }, context) {
    const { withStore } = await import('../operator-store.ts');
    const { listClients } = await import('../../../server/src/features/service-clients/public.ts');
    const clients = await withStore(context, dataDir, ({ db, clock }) => listClients(db.read, clock.now()));
    const lines = clients.map(({ clientId, name, scopes }) => `${clientId}  ${scopes.join(',')}  ${name}`);
    return { data: { services: clients }, text: lines.join('\n') || 'No service is registered' };
  },
});
