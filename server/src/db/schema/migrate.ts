import type { Clock } from '../../base/clock.ts';
import { StartupError } from '../../base/errors.ts';
import type { Database, Tx } from '../database.ts';
import * as foundation from './migrations/0001-foundation.ts';
import * as peopleAndPictures from './migrations/0002-people-and-pictures.ts';
import * as teams from './migrations/0003-teams.ts';
import * as mailAndLinks from './migrations/0004-mail-and-links.ts';
import * as signInAndServices from './migrations/0005-sign-in-and-services.ts';
import * as relays from './migrations/0006-relays.ts';
import * as webhooks from './migrations/0007-webhooks.ts';
import * as auditChain from './migrations/0008-audit-chain.ts';
import * as sharedKeys from './migrations/0009-shared-keys.ts';
import * as nodes from './migrations/0010-nodes.ts';
import * as verifiedAddresses from './migrations/0011-verified-addresses.ts';
import * as sessionLifetimes from './migrations/0012-session-lifetimes.ts';
import * as auditCheckpoints from './migrations/0013-audit-checkpoints.ts';
import * as knownNetworks from './migrations/0014-known-networks.ts';
import * as makers from './migrations/0015-makers.ts';
import * as mailedCodes from './migrations/0016-mailed-codes.ts';
import * as claimedAddresses from './migrations/0017-claimed-addresses.ts';
import * as auditErasures from './migrations/0018-audit-erasures.ts';
import * as shownLinks from './migrations/0019-shown-links.ts';
import * as settingMakers from './migrations/0020-setting-makers.ts';
import * as ownAddresses from './migrations/0021-own-addresses.ts';
import * as unlinkedIdentities from './migrations/0022-unlinked-identities.ts';
import * as idempotencyKeys from './migrations/0023-idempotency-keys.ts';
import * as signInEndsAndMakers from './migrations/0024-sign-in-ends-and-makers.ts';

interface Migration {
  readonly name: string;
  /**
   * The oldest schema whose releases go on working, reading and writing, on a store with this step; at least the one with
   * `compatible_schemas`. Without it, only releases that know the step do. Rule: NODE-9.
   */
  readonly compatibleFrom?: number;
  readonly up: (tx: Tx) => Promise<void>;
}

/** In order; the place in this list is the version. Entries are only ever added at the end. */
const migrations: readonly Migration[] = [
  { name: 'foundation', up: foundation.up },
  { name: 'people-and-pictures', up: peopleAndPictures.up },
  { name: 'teams', up: teams.up },
  { name: 'mail-and-links', up: mailAndLinks.up },
  { name: 'sign-in-and-services', up: signInAndServices.up },
  { name: 'relays', up: relays.up },
  { name: 'webhooks', up: webhooks.up },
  { name: 'audit-chain', up: auditChain.up },
  { name: 'shared-keys', up: sharedKeys.up },
  { name: 'nodes', up: nodes.up },
  { name: 'verified-addresses', up: verifiedAddresses.up },
  // Earlier releases leave the new columns empty, and that is a value of each.
  { name: 'session-lifetimes', up: sessionLifetimes.up, compatibleFrom: 11 },
  // An older release does without: it only takes a log whose beginning was removed for a broken one.
  { name: 'audit-checkpoints', up: auditCheckpoints.up, compatibleFrom: 11 },
  { name: 'known-networks', up: knownNetworks.up, compatibleFrom: 11 },
  { name: 'makers', up: makers.up, compatibleFrom: 11 },
  // A code of an older release is right at its nodes only.
  { name: 'mailed-codes', up: mailedCodes.up, compatibleFrom: 11 },
  // An older release does not move the address; such a link is of users whose own one is verified, and does nothing there.
  { name: 'claimed-addresses', up: claimedAddresses.up, compatibleFrom: 11 },
  // An older release signs no erasure: its own are signed afterwards, as earlier ones are.
  { name: 'audit-erasures', up: auditErasures.up, compatibleFrom: 11 },
  { name: 'shown-links', up: shownLinks.up, compatibleFrom: 11 },
  { name: 'setting-makers', up: settingMakers.up, compatibleFrom: 11 },
  { name: 'own-addresses', up: ownAddresses.up, compatibleFrom: 11 },
  // To an older release an unlinked identity is still linked, until all nodes are replaced.
  { name: 'unlinked-identities', up: unlinkedIdentities.up, compatibleFrom: 11 },
  // An older release ignores the header, as it always did.
  { name: 'idempotency-keys', up: idempotencyKeys.up, compatibleFrom: 11 },
  // An older release lets in who was at the provider meanwhile, and notes no one who sets the steps, as it did before.
  { name: 'sign-in-ends-and-makers', up: signInEndsAndMakers.up, compatibleFrom: 11 },
];

/** The version that this release works with. */
export const schemaVersion = migrations.length;

function newerSchema(applied: number): StartupError {
  return new StartupError(
    `The store has schema ${applied}, this release knows ${schemaVersion}: start the newer release that wrote it`,
  );
}

async function appliedVersion(db: Database): Promise<number> {
  const row = await db.read
    .selectFrom('schema_migrations')
    .select((eb) => eb.fn.max('version').as('version'))
    .executeTakeFirst();
  return row?.version ?? 0;
}

/** Returns whether this release may go on working with a store that newer releases have migrated. */
async function isCompatible({ read }: Database): Promise<boolean> {
  const tables = await read.introspection.getTables();
  if (!tables.some(({ name }) => name === 'compatible_schemas')) return false;
  const newer = await read
    .selectFrom('schema_migrations as step')
    .leftJoin('compatible_schemas as compatible', 'compatible.version', 'step.version')
    .where('step.version', '>', schemaVersion)
    .select('compatible.compatible_from as from')
    .execute();
  return newer.every(({ from }) => from !== null && from <= schemaVersion);
}

function stepFailed(step: string, error: unknown): StartupError {
  const reason = error instanceof Error ? error.message : String(error);
  return new StartupError(`The store cannot be brought to ${step} and was left as it was: ${reason}`, { cause: error });
}

/**
 * Migrates the store to this release's schema, forward only, each step completely or not at all. Throws StartupError
 * when a newer release has migrated it that did not declare this one compatible, because that could destroy data, and
 * when a step fails. Rules: STORE-9, STORE-10, NODE-9.
 * @returns the versions before and after
 */
export async function migrate(db: Database, clock: Clock): Promise<{ readonly from: number; readonly to: number }> {
  await db.transaction((tx) =>
    tx.schema
      .createTable('schema_migrations')
      .ifNotExists()
      .addColumn('version', 'integer', (c) => c.primaryKey())
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('applied_at', 'bigint', (c) => c.notNull())
      .execute(),
  );
  const applied = await appliedVersion(db);
  if (applied > schemaVersion) {
    if (!(await isCompatible(db))) throw newerSchema(applied);
    return { from: applied, to: applied };
  }
  for (const [place, { name, up, compatibleFrom }] of migrations.entries()) {
    const version = place + 1;
    if (version <= applied) continue;
    const step = db.transaction(async (tx) => {
      // Two nodes may start at the same time and take the steps in turns.
      const isThere = await tx.selectFrom('schema_migrations').where('version', '=', version).select('name').execute();
      if (isThere.length > 0) return;
      await up(tx);
      await tx.insertInto('schema_migrations').values({ version, name, applied_at: clock.now() }).execute();
      if (compatibleFrom === undefined) return;
      await tx.insertInto('compatible_schemas').values({ version, compatible_from: compatibleFrom }).execute();
    });
    await step.catch((error: unknown) => {
      throw stepFailed(`schema ${version} (${name})`, error);
    });
  }
  return { from: applied, to: schemaVersion };
}

/** The version of a store that may have none. */
async function presentVersion(db: Database): Promise<number> {
  return appliedVersion(db).catch((error: unknown) => {
    // Only a store that no server has ever finished making has no such table.
    const text = error instanceof Error ? error.message : '';
    if (text.startsWith('no such table') || /relation "[^"]+" does not exist/.test(text)) return 0;
    throw error;
  });
}

/** Returns whether any release has begun to create the tables of the store. */
export async function hasSchema(db: Database): Promise<boolean> {
  return (await presentVersion(db)) > 0;
}

/**
 * Rejects a store that this release would have to migrate first, or cannot read. Throws StartupError. Rule: STORE-10.
 */
export async function requireCurrentSchema(db: Database): Promise<void> {
  const applied = await presentVersion(db);
  if (applied > schemaVersion && !(await isCompatible(db))) throw newerSchema(applied);
  if (applied < schemaVersion) {
    throw new StartupError(
      `The store has schema ${applied}, this release works with ${schemaVersion}: start the server, or run latchkey migrate`,
    );
  }
}
