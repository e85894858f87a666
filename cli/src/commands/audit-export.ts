import { command } from '../command.ts';
import { CommandError } from '../failures.ts';
import { neededText, oneOf, storeOptions } from '../options.ts';

/** Rule: AUDIT-13. */
export const auditExport = command({
  name: 'audit export',
  summary: 'Write the whole audit log into a file',
  details:
    'Oldest record first, each with all that it takes to verify it without the store. The file is new, and its owner’s ' +
    'alone. It changes nothing, and may run while a server runs.',
  examples: ['audit export --file audit.jsonl', 'audit export --file audit.csv --format csv'],
  options: {
    ...storeOptions,
    file: neededText('file', 'which must not be there yet'),
    format: oneOf(['jsonl', 'csv'], 'jsonl', 'JSON Lines, or CSV (RFC 4180)'),
  },
  async run({ dataDir, file, format }, context) {
    const { withStore } = await import('../operator-store.ts');
    const { open } = await import('node:fs/promises');
    const { exportAudit } = await import('../../../server/src/audit-log/export-audit.ts');
    const { selectAuditEnd } = await import('../../../server/src/audit-log/audit-events.ts');
    const records = await withStore(context, dataDir, async ({ db }) => {
      const out = await open(file, 'wx', 0o600).catch((error: unknown) => {
        throw new CommandError('failed', `The file ${file} cannot be created, or exists already`, { cause: error });
      });
      try {
        const total = await selectAuditEnd(db.read);
        let written = 0;
        const note = (count: number) => {
          written = count;
          context.progress(Math.min(count, total), total);
        };
        for await (const part of exportAudit(db.read, { filter: { orgId: null }, format }, note)) await out.write(part);
        await out.sync();
        return written;
      } finally {
        await out.close();
      }
    });
    return { data: { exported: { file, format, records } }, text: `Wrote ${records} records to ${file}` };
  },
});
