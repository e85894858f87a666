import { command } from '../command.ts';
import { storeOptions } from '../options.ts';

/** Rule: CLI-3. */
export const orgStatus = command({
  name: 'org status',
  summary: 'Show the organization of this store, and whether it is deleted',
  details: 'Changes nothing.',
  examples: ['org status', 'org status --data-dir /var/lib/latchkey --json'],
  options: storeOptions,
  async run({ dataDir }, context) {
    const { withStore } = await import('../operator-store.ts');
    const { readOrganizationState } = await import('../../../server/src/features/org/public.ts');
    const organization = await withStore(context, dataDir, ({ db }) => readOrganizationState(db.read));
    if (organization === null) return { data: { state: 'none', organization: null }, text: 'No organization yet' };
    const { slug, registeredName, isDeleted, deletedBy, updatedAt, activeUsers } = organization;
    const name = registeredName === null ? slug : `${slug} (${registeredName})`;
    const deleted = `${name} is deleted since ${updatedAt}, by ${deletedBy ?? 'an unknown user'}`;
    const text = `${isDeleted ? deleted : `${name} is active`}; active users: ${activeUsers}`;
    return { data: { state: isDeleted ? 'deleted' : 'active', organization }, text };
  },
});
