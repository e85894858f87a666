import type { BackupFacts } from '../../../server/src/db/files/backup-file.ts';
import { schemaVersion } from '../../../server/src/db/schema/migrate.ts';
import type { CarryOverError } from '../../../server/src/operator/restoring/public.ts';
import { CommandError } from '../failures.ts';

const texts: Readonly<Record<CarryOverError, string>> = {
  otherOrganization: 'the present store holds another organization than the back-up, or one of the two holds none',
  otherLog: 'the present store does not continue the back-up: the last audit record of the back-up is not in its log',
  otherTables: 'the present store has other tables than this release',
  noAdministrator: 'none of the present administrators is in the back-up',
};

const nextSteps =
  '--without-journal restores the back-up as it is; --revoke then names what to revoke: sessions, tokens, all, or none; with none, credentials that were revoked since become valid again';

/** Error of a restore without a journal, which would tell what ended since the back-up. Nothing has changed. */
export function noJournal(problem: string): CommandError {
  return new CommandError('refused', `There is no record of what ended since the back-up (${problem}). ${nextSteps}`);
}

/** The end of a restore that cannot take over from the present store. Nothing has changed. */
export function refuseCarrying(reason: CarryOverError): CommandError {
  return noJournal(texts[reason]);
}

/** Rejects a back-up of a newer schema, and, unless it may be migrated, one of an earlier schema. */
export function requireSchema({ schema }: BackupFacts, mayMigrate: boolean): void {
  if (schema > schemaVersion) {
    throw new CommandError(
      'failed',
      `The back-up has schema ${schema}, this release knows ${schemaVersion}: restore it with the release that created it, or a newer one`,
    );
  }
  if (schema < schemaVersion && !mayMigrate) {
    throw new CommandError(
      'refused',
      `The back-up has schema ${schema}, this release works with ${schemaVersion}: use --migrate, or restore it with the release that created it`,
    );
  }
}
