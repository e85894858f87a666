import { command } from '../command.ts';
import { CommandError } from '../failures.ts';
import { flag, neededText, storeOptions } from '../options.ts';

function readDate(given: string): number {
  const ms = /^\d{4}-\d{2}-\d{2}(T.*)?$/.test(given) ? Date.parse(given) : Number.NaN;
  if (Number.isNaN(ms)) throw new CommandError('usage', '--before must be a date such as 2026-01-31, in UTC');
  return ms;
}

/** Rule: AUDIT-19. */
export const auditArchive = command({
  name: 'audit archive',
  summary: 'Write the oldest records of the audit log into a file, and remove them if that is wanted',
  details:
    'Writes JSON Lines, oldest record first, each with all that it takes to verify it without the store. The file is new, and ' +
    'its owner’s alone. --remove then removes the written records behind a signed checkpoint, so that audit verify still proves ' +
    'the rest. It may run while a server runs.',
  examples: ['audit archive --before 2026-01-01 --to audit-2025.jsonl --remove'],
  options: {
    ...storeOptions,
    before: neededText('date', 'of the oldest record that is not written, in UTC'),
    to: neededText('file', 'which must not be there yet'),
    remove: flag('remove the written records from the log'),
  },
  async run({ dataDir, before, to, remove }, context) {
    const beforeMs = readDate(before);
    const { operator, operatorConfig, withConfiguredStore } = await import('../operator-store.ts');
    const { presentKey } = await import('../present-key.ts');
    const { writeNewFile } = await import('../new-file.ts');
    const { archiveAudit } = await import('../../../server/src/audit-log/export-audit.ts');
    const { removeAudit, selectLastBefore } = await import('../../../server/src/audit-log/remove-audit.ts');
    const config = operatorConfig(context, dataDir);
    const encryption = presentKey(config);
    if (remove && !encryption) {
      throw new CommandError('failed', 'ENCRYPTION_KEY is missing: the checkpoint is signed with that of the servers');
    }
    return withConfiguredStore(config, async (services) => {
      const upTo = await selectLastBefore(services.db.read, beforeMs);
      const records = await writeNewFile(to, archiveAudit(services.db, upTo));
      const removed = remove && encryption ? await removeAudit({ ...services, encryption }, upTo, operator) : 0;
      const text = `Wrote ${records} records to ${to}${remove ? `, and removed ${removed} from the log` : ''}`;
      return { data: { archived: { file: to, records, removed } }, text };
    });
  },
});
