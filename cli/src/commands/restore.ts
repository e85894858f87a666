import type { RestoredStore } from '../backup/restore-backup.ts';
import { command } from '../command.ts';
import { CommandError } from '../failures.ts';
import { flag, neededText, oneOf, storeOptions } from '../options.ts';

function counts(of: object): string {
  const some = Object.entries(of).filter(([, count]) => count !== 0);
  return some.length === 0 ? 'nothing' : some.map(([name, count]) => `${name} ${String(count)}`).join(', ');
}

function textOf({ facts, carried, revoked, keys, audit, keptAside }: RestoredStore, from: string): string {
  const lines = [
    `Restored ${from} of ${facts.madeAt}`,
    carried
      ? `Ended since, and ended in it: ${counts(carried.ended)}`
      : 'Nothing was taken over from the earlier store: credentials that ended since the back-up are valid again, unless they were revoked here.',
    ...(carried
      ? [`Created since, and not in it: ${counts(carried.leftBehind)}`, `Events for consumers: ${carried.events}`]
      : []),
    `Ended by --revoke: ${counts(revoked)}`,
    ...(keys.written.length > 0 ? [`Keys from the back-up: ${keys.written.join(', ')}`] : []),
    ...(keys.kept.length > 0
      ? [`Keys that were there, other than those of the back-up, stay: ${keys.kept.join(', ')}`]
      : []),
    audit.ok
      ? `The audit log is sound: ${audit.head.sequence}:${audit.head.hash}`
      : `The audit log is broken at record ${audit.sequence}: see latchkey audit verify`,
    keptAside === null ? 'There was no store before.' : `The store of before is in ${keptAside}`,
  ];
  return lines.join('\n');
}

function missingRevocation(): CommandError {
  return new CommandError(
    'usage',
    '--without-journal needs --revoke, since there is no record of what was revoked after the back-up: all, tokens or sessions revoke those, none makes credentials valid again that were revoked since',
  );
}

/** Rules: CLI-26 to CLI-29, CRED-7. */
export const restore = command({
  name: 'restore',
  summary: 'Put a back-up in the place of the store',
  details:
    'No server may run on the directory. Everything that was revoked, ended, deleted or changed since the back-up stays so, as the ' +
    'present store knows it: tokens, sessions, links, users, passwords, addresses, services, webhooks. Both logs continue, and ' +
    'consumers get events about the differences. Where the present store is gone, damaged or another one, there is no record of ' +
    'what ended since: then pass --without-journal, and --revoke with what to revoke: with none, credentials that were revoked since become valid again. The present store is kept aside.',
  examples: [
    'restore --from /backups/latchkey-1.lkb',
    'restore --from /backups/latchkey-1.lkb --without-journal --revoke tokens',
  ],
  options: {
    ...storeOptions,
    from: neededText('file', 'that latchkey backup wrote'),
    revoke: oneOf(
      ['none', 'sessions', 'tokens', 'all'],
      null,
      'sessions ends every session and link; tokens every token and service too; all every password too; none, which is the default with the present store, ends nothing',
    ),
    withoutJournal: flag('take nothing over from the present store'),
    migrate: flag("bring a back-up of an earlier release to this release's schema"),
  },
  async run({ dataDir, from, revoke, withoutJournal, migrate }, context) {
    const { operatorConfig } = await import('../operator-store.ts');
    const { restoreBackup } = await import('../backup/restore-backup.ts');
    const { requireEmbedded } = await import('../backup/require-embedded.ts');
    const config = operatorConfig(context, dataDir);
    if (withoutJournal && revoke === null) throw missingRevocation();
    requireEmbedded(config, dataDir, `pg_restore --clean --if-exists --dbname="$DATABASE_URL" ${from}`);
    const restored = await restoreBackup(config, {
      from,
      revoke: revoke ?? 'none',
      isAlone: withoutJournal,
      mayMigrate: migrate,
      progress: context.progress,
    });
    return { data: { restored: { from, ...restored } }, text: textOf(restored, from) };
  },
});
