import { mkdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type AuditVerdict, verifyAudit } from '../../../server/src/audit-log/verify-audit.ts';
import { systemClock } from '../../../server/src/base/clock.ts';
import { idGenerator } from '../../../server/src/base/ids.ts';
import type { Config } from '../../../server/src/config/config.ts';
import { withAttachedStore } from '../../../server/src/db/files/attached-store.ts';
import { type BackupFacts, type UnpackedBackup, unpackBackup } from '../../../server/src/db/files/backup-file.ts';
import { holdDataDir, prepareDataDir, storeFile } from '../../../server/src/db/files/data-dir.ts';
import type { Progress } from '../../../server/src/db/files/store-copy.ts';
import { migrate, schemaVersion } from '../../../server/src/db/schema/migrate.ts';
import { openSqlite } from '../../../server/src/db/sqlite/sqlite.ts';
import {
  type Carried,
  carryOver,
  continueWithoutJournal,
  type Revocation,
  type Revoked,
  recordRestored,
  revokeRestored,
} from '../../../server/src/operator/restoring/public.ts';
import { operator } from '../operator-store.ts';
import { type KeyPlan, planKeys, requireSameEncryption, writeKeys } from './backup-keys.ts';
import { copyPresent, takePresentStore } from './present-store.ts';
import { replaceStore } from './replace-store.ts';
import { noJournal, refuseCarrying, requireSchema } from './restore-errors.ts';

interface RestoreInput {
  readonly from: string;
  /** Takes nothing over from the present store. */
  readonly isAlone: boolean;
  readonly revoke: Revocation;
  /** A back-up of an earlier schema may be migrated. */
  readonly mayMigrate: boolean;
  readonly progress: Progress;
}

/** Outcome of restoring an organization. */
export interface RestoredStore {
  readonly facts: BackupFacts;
  /** `null`: nothing was taken over from the store of before. */
  readonly carried: Carried | null;
  readonly revoked: Revoked;
  readonly keys: KeyPlan;
  readonly audit: AuditVerdict;
  /** Directory with the earlier store; `null`: there was none. */
  readonly keptAside: string | null;
}

const services = { clock: systemClock, newId: idGenerator(systemClock), metrics: { countActivity: () => {} } };

async function bringUpToDate(staging: string): Promise<void> {
  const db = openSqlite(staging);
  try {
    await migrate(db, systemClock);
  } finally {
    await db.close();
  }
}

async function verify(staging: string, progress: Progress): Promise<AuditVerdict> {
  const db = openSqlite(staging);
  try {
    return await verifyAudit(db, { progress });
  } finally {
    await db.close();
  }
}

interface Parts {
  readonly facts: BackupFacts;
  readonly staging: string;
  /** The file of the present store's copy; `null`: nothing is taken over. */
  readonly journal: string | null;
}

/** Prepares the store of the back-up for its new place, in one transaction. */
function prepare({ facts, staging, journal }: Parts, { revoke }: RestoreInput) {
  return withAttachedStore(join(staging, storeFile), journal, async (tx) => {
    const carried = journal === null ? null : await carryOver(tx, services, facts.schema);
    if (typeof carried === 'string') throw refuseCarrying(carried);
    if (carried === null) await continueWithoutJournal(tx);
    const revoked = await revokeRestored(tx, services, { input: revoke, origin: operator });
    const details = {
      madeAt: facts.madeAt,
      carried: carried?.ended ?? null,
      leftBehind: carried?.leftBehind ?? null,
      events: carried?.events ?? 0,
      revoked,
    };
    await recordRestored(tx, services, { details, origin: operator });
    return { carried, revoked };
  });
}

async function restoreInto(config: Config, staging: string, input: RestoreInput): Promise<RestoredStore> {
  const { isAlone, mayMigrate, progress } = input;
  const { dataDir } = config;
  const file = join(staging, storeFile);
  const { facts, keys }: UnpackedBackup = unpackBackup(resolve(input.from), file, progress);
  requireSchema(facts, mayMigrate);
  if (facts.schema < schemaVersion) await bringUpToDate(staging);
  const plan = planKeys(config, keys);
  const present = takePresentStore(config);
  try {
    const copy = isAlone ? null : await copyPresent(present, staging, progress);
    if (copy && 'problem' in copy) throw noJournal(copy.problem);
    if (copy === null) requireSameEncryption(config, plan);
    const prepared = await prepare({ facts, staging, journal: copy?.file ?? null }, input);
    const audit = await verify(staging, progress);
    writeKeys(config, keys, plan);
    const keptAside = replaceStore(file, dataDir, present.isThere);
    return { facts, ...prepared, keys: plan, audit, keptAside };
  } finally {
    present.held?.release();
  }
}

/**
 * Replaces the present store by that of a back-up, while no server runs on the directory. What ended since the back-up
 * stays ended, as far as the present store knows it. If it is interrupted, the directory has one store or the other,
 * complete. Throws StartupError and CommandError; then nothing has changed. Rules: CLI-26 to CLI-29.
 */
export async function restoreBackup(config: Config, input: RestoreInput): Promise<RestoredStore> {
  prepareDataDir(config.dataDir);
  const hold = holdDataDir(config.dataDir);
  const staging = join(config.dataDir, 'restoring');
  const clear = () => rmSync(staging, { recursive: true, force: true });
  try {
    // Left by a restore that was cut short; no other process is here.
    clear();
    mkdirSync(staging, { mode: 0o700 });
    return await restoreInto(config, staging, input);
  } finally {
    clear();
    hold.release();
  }
}
