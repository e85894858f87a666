import { command } from '../command.ts';
import { CommandError } from '../failures.ts';
import { flag, storeOptions } from '../options.ts';
import type { RuntimeContext } from '../runtime-context.ts';

async function confirm({ ask }: RuntimeContext, slug: string): Promise<void> {
  const response = await ask(`Purging cannot be undone. Type ${slug} to purge it: `);
  if (response === null) {
    throw new CommandError('refused', 'Purging cannot be undone: confirm it with --yes, or at a terminal');
  }
  if (response.trim() !== slug) throw new CommandError('refused', `That is not ${slug}: nothing was purged`);
}

/** Rules: CLI-3, CLI-9. */
export const orgPurge = command({
  name: 'org purge',
  summary: 'Remove a deleted organization and everything that belongs to it, for good',
  details:
    'Users, passwords, groups, sessions, tokens and pictures go; afterwards POST /api/v1/org works again, also on a ' +
    'running server. The event log and the audit log stay complete, names and addresses included, and so do ' +
    'backups. Asks for the slug of the organization at a terminal.',
  examples: ['org purge', 'org purge --yes --json'],
  options: { ...storeOptions, yes: flag('do not ask') },
  async run({ dataDir, yes }, context) {
    const { operator, withStore } = await import('../operator-store.ts');
    const { purgeOrganization, readOrganizationState } = await import('../../../server/src/features/org/public.ts');
    const { operatorError: refused } = await import('../operator-errors.ts');
    const purged = await withStore(context, dataDir, async (services) => {
      const organization = await readOrganizationState(services.db.read);
      if (organization === null) throw refused('noOrganization');
      if (!organization.isDeleted) throw refused('notDeleted');
      if (!yes) await confirm(context, organization.slug);
      return purgeOrganization(services, operator);
    });
    if (typeof purged === 'string') throw refused(purged);
    const rows = Object.entries(purged.removed).map(([table, count]) => `  ${table}: ${count}`);
    const kept = 'The event log and the audit log stay complete.';
    return { data: { purged }, text: `Purged ${purged.slug}. Rows removed:\n${rows.join('\n')}\n${kept}` };
  },
});
