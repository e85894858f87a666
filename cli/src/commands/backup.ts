import { command } from '../command.ts';
import { flag, neededText, storeOptions } from '../options.ts';

const withKeys =
  'It contains the keys too: anyone who has this file can sign as this instance. Keep it as secret as a password.';
const withoutKeys = 'It holds no keys: keep signing-keys.json and the encryption key elsewhere.';

function megabytes(bytes: number): string {
  return (bytes / 1_048_576).toFixed(1);
}

/** Rules: CLI-24, CLI-25. */
export const backup = command({
  name: 'backup',
  summary: 'Write the whole store, and the keys, into one file',
  details:
    'A snapshot of the store, also while a server runs and writes. The file is its ' +
    'owner’s alone; it is verified before it gets its name. Unless --without-keys is given it holds the private keys of the ' +
    'data directory as well: keep it as secret as these. With DATABASE_URL pg_dump does this.',
  examples: ['backup --to /backups/latchkey-1.lkb', 'backup --to /backups/latest.lkb --force --json'],
  options: {
    ...storeOptions,
    to: neededText('file', 'which must not be there yet'),
    force: flag('replace the file; it stays until the new one is whole'),
    withoutKeys: flag('leave signing-keys.json and encryption-key out'),
  },
  async run({ dataDir, to, force, withoutKeys: isWithout }, context) {
    const { operatorConfig } = await import('../operator-store.ts');
    const { makeBackup } = await import('../backup/make-backup.ts');
    const { requireEmbedded } = await import('../backup/require-embedded.ts');
    const config = operatorConfig(context, dataDir);
    requireEmbedded(config, dataDir, `pg_dump --format=custom --file=${to} "$DATABASE_URL"`);
    const { progress } = context;
    const made = await makeBackup(config, { to, isForced: force, withKeys: !isWithout, progress });
    const { users, tokens, events, auditRecords } = made;
    const lines = [
      `Wrote ${made.file}, ${megabytes(made.bytes)} MB, schema ${made.schema}, verified`,
      `${users} users, ${tokens} tokens, ${events} events, ${auditRecords} audit records`,
      made.keys.length > 0 ? withKeys : withoutKeys,
      ...(config.encryptionKey === null ? [] : ['ENCRYPTION_KEY is configured, and not in it: keep it elsewhere.']),
    ];
    return { data: { backup: made }, text: lines.join('\n') };
  },
});
