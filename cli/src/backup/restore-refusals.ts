import type { BackupFacts } from '../../../server/src/db/files/backup-file.ts';
import { schemaVersion } from '../../../server/src/db/schema/migrate.ts';
import type { CarryRefusal } from '../../../server/src/operator/restoring/public.ts';
import { CommandError } from '../failures.ts';

const texts: Readonly<Record<CarryRefusal, string>> = {
  otherOrganization: 'the present store holds another organization than the back-up, or one of the two holds none',
  otherLog: 'the present store does not go on from the back-up: the last audit record of the back-up is not in its log',
  otherTables: 'the present store has other tables than this release',
  noAdministrator: 'nobody who is an administrator now is in the back-up',
};

const wayOut =
  '--without-journal restores the back-up as it is; --revoke then has to say what is to end: sessions, tokens, all, or none, so that what was revoked since works again';

/** Error of a restore without a journal, which would tell what ended since the back-up. Nothing has changed. */
export function noJournal(problem: string): CommandError {
  return new CommandError('refused', `Nothing tells what ended since the back-up (${problem}). ${wayOut}`);
}

/** The end of a restore that cannot take over from the present store. Nothing has changed. */
export function refuseCarrying(reason: CarryRefusal): CommandError {
  return noJournal(texts[reason]);
}

/** Rejects a back-up of a newer schema, and, unless it may be migrated, one of an earlier schema. */
export function requireSchema({ schema }: BackupFacts, mayMigrate: boolean): void {
  if (schema > schemaVersion) {
    throw new CommandError(
      'failed',
      `The back-up has schema ${schema}, this release knows ${schemaVersion}: restore it with the release that made it, or a newer one`,
    );
  }
  if (schema < schemaVersion && !mayMigrate) {
    throw new CommandError(
      'refused',
      `The back-up has schema ${schema}, this release works with ${schemaVersion}: --migrate brings it there; or restore it with the release that made it`,
    );
  }
}
