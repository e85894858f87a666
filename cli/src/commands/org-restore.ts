import { command } from '../command.ts';
import { storeOptions } from '../options.ts';

/** Rules: CLI-3, CLI-8. */
export const orgRestore = command({
  name: 'org restore',
  summary: 'Bring a deleted organization back',
  details:
    'Its users can sign in again at once, also on a running server. Sessions and personal access tokens from before ' +
    'stay revoked. Consumers get events about the organization and every active user as if they were new.',
  examples: ['org restore', 'org restore --data-dir /var/lib/latchkey --json'],
  options: storeOptions,
  async run({ dataDir }, context) {
    const { operator, withStore } = await import('../operator-store.ts');
    const { restoreOrganization } = await import('../../../server/src/features/org/public.ts');
    const { operatorError: refused } = await import('../operator-errors.ts');
    const restored = await withStore(context, dataDir, (services) => restoreOrganization(services, operator));
    if (typeof restored === 'string') throw refused(restored);
    const { slug, activeUsers, revokedTokens } = restored;
    const text = `Restored ${slug}; active users: ${activeUsers}; tokens revoked: ${revokedTokens}. All users must sign in again`;
    return { data: { restored }, text };
  },
});
