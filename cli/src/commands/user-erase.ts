import { command } from '../command.ts';
import { CommandError } from '../failures.ts';
import { flag, neededText, storeOptions } from '../options.ts';
import type { RuntimeContext } from '../runtime-context.ts';

async function confirm({ ask }: RuntimeContext, slug: string): Promise<void> {
  const response = await ask(`Erasing cannot be undone. Type ${slug} to erase the data of this user: `);
  if (response === null) {
    throw new CommandError('refused', 'Erasing cannot be undone: confirm it with --yes, or at a terminal');
  }
  if (response.trim() !== slug) throw new CommandError('refused', `That is not ${slug}: nothing was erased`);
}

/** Rules: AUDIT-14, AUDIT-20. */
export const userErase = command({
  name: 'user erase',
  summary: 'Erase the data of a deleted user, for good',
  details:
    'Only the id is kept. Name, address and everything else of the user is deleted, and so is what the audit log contains about ' +
    'the user besides ids, and the kept events; the audit log can still be verified. Backups, and the data that consumers of ' +
    'events stored, are not changed. Delete the user first. Asks for the slug of the user at a terminal.',
  examples: ['user erase --user 0123456789abcdef01234567', 'user erase --user 0123456789abcdef01234567 --yes --json'],
  options: {
    ...storeOptions,
    user: neededText('user id', 'of the deleted user'),
    yes: flag('do not ask'),
  },
  async run({ dataDir, user, yes }, context) {
    const { operator, operatorConfig, withConfiguredStore } = await import('../operator-store.ts');
    const { presentKey } = await import('../present-key.ts');
    const { eraseUser, findErasable } = await import('../../../server/src/operator/erasure/public.ts');
    const { operatorError: refused } = await import('../operator-errors.ts');
    const userId = user.toLowerCase();
    const config = operatorConfig(context, dataDir);
    const encryption = presentKey(config);
    if (!encryption) {
      throw new CommandError('failed', 'ENCRYPTION_KEY is missing: the erasure is signed with that of the servers');
    }
    const erased = await withConfiguredStore(config, async (services) => {
      const found = await findErasable(services.db.read, userId);
      if (typeof found === 'string') throw refused(found);
      if (!yes) await confirm(context, found.slug);
      return eraseUser({ ...services, encryption }, { userId, origin: operator });
    });
    if (typeof erased === 'string') throw refused(erased);
    const { records, events } = erased;
    return { data: { erased }, text: `Erased ${userId}: ${records} records of the audit log, ${events} kept events` };
  },
});
