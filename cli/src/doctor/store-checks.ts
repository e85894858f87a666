import { selectAuditEnd } from '../../../server/src/audit-log/audit-events.ts';
import { selectOwnAddresses } from '../../../server/src/audit-log/own-addresses.ts';
import { auditFaults, verifyAudit } from '../../../server/src/audit-log/verify-audit.ts';
import { hour, minute, systemClock } from '../../../server/src/base/clock.ts';
import type { Config } from '../../../server/src/config/config.ts';
import type { Database } from '../../../server/src/db/database.ts';
import { holdsStore } from '../../../server/src/db/files/data-dir.ts';
import { checkStoreFile } from '../../../server/src/db/files/store-check.ts';
import { selectRemainingUsers } from '../../../server/src/db/members/erasure-traces.ts';
import { undurableSettings } from '../../../server/src/db/postgres/postgres-durability.ts';
import { requireCurrentSchema } from '../../../server/src/db/schema/migrate.ts';
import { findTokenCircles } from '../../../server/src/operator/imported-tokens/public.ts';
import { auditStream } from '../../../server/src/outbox/envelope.ts';
import { readNewest } from '../../../server/src/outbox/event-log.ts';
import { countDeadLetters, selectRelays } from '../../../server/src/outbox/relay/relay-store.ts';
import { isSubscriptionTo } from '../../../server/src/outbox/relay/subscription.ts';
import { openStore } from '../operator-store.ts';
import { type Finding, failed, fine, messageOf, shownBytes, skipped, warning } from './check.ts';

/** A larger file takes long to go through, which --deep does all the same. */
const wholeBytesMax = 256_000_000;
const behindAdvised = 1_000;
const addressesListed = 20;
const circlesListed = 20;
const remainingListed = 20;
const circleShown = 5;

/**
 * Opens the store and looks whether it has this release's schema. It makes and migrates none. Rule: CLI-21.
 * @returns as `value` the store, to be closed; `null`: it cannot be used
 */
export async function checkStore(
  config: Config,
): Promise<{ readonly finding: Finding; readonly value: Database | null }> {
  const place = config.databaseUrl ? 'The database of DATABASE_URL' : `The store in ${config.dataDir}`;
  let db: Database | null = null;
  try {
    db = await openStore(config);
    await requireCurrentSchema(db);
    return { value: db, finding: fine(`${place} is there, with this release's schema`) };
  } catch (error) {
    await db?.close();
    return {
      value: null,
      finding: failed(messageOf(error), 'Follow the message; starting a server creates a new store'),
    };
  }
}

/** Checks that PostgreSQL keeps what it acknowledges. Rules: CLI-21, STORE-19. */
async function checkDurability({ read }: Database): Promise<Finding> {
  const settings = await undurableSettings(read);
  if (settings.length === 0) return fine('PostgreSQL manages its own files, and syncs what it acknowledges');
  const cure = 'Turn them on in postgresql.conf, or for this database or user (ALTER DATABASE, ALTER ROLE)';
  return warning(`PostgreSQL may lose what it acknowledges when power fails: ${settings.join(', ')} off`, cure);
}

/** Checks the integrity of the store: the file of an embedded one, the settings of PostgreSQL. Rule: CLI-21. */
export async function checkIntegrity(
  { databaseUrl, dataDir }: Config,
  db: Database | null,
  isDeep: boolean,
): Promise<Finding> {
  if (databaseUrl) return db ? checkDurability(db) : skipped('There is no store to check');
  if (!holdsStore(dataDir)) return skipped('There is no store to check');
  const cure = 'Stop the server and restore a backup; keep the damaged files until that has worked';
  const { bytes, isWhole, damage, strays } = checkStoreFile(dataDir, isDeep ? Number.POSITIVE_INFINITY : wholeBytesMax);
  if (damage.length > 0) return failed(`The store is damaged: ${damage.join('; ')}`, cure);
  if (strays.length > 0) return failed(`Rows refer to rows that are not there, in ${strays.join(', ')}`, cure);
  if (!isWhole) return skipped(`${shownBytes(bytes)} take a while to go through: --deep does`);
  return fine(`No page of the store is damaged (${shownBytes(bytes)})`);
}

/** Checks that events reach their destinations. Rule: CLI-21. */
export async function checkEvents({ read }: Database): Promise<Finding> {
  const [newest, auditEnd, deadLetters] = [
    await readNewest(read),
    await selectAuditEnd(read),
    await countDeadLetters(read),
  ];
  const problems: string[] = [];
  const relays = await selectRelays(read);
  for (const { name, position, failing_since: failingMs, last_error: reason } of relays) {
    const behind = (isSubscriptionTo(auditStream, name) ? auditEnd : newest) - position;
    const dead = deadLetters.get(name) ?? 0;
    if (dead > 0) problems.push(`${name} has set ${dead} events aside`);
    const minutes = failingMs === null ? 0 : Math.round((systemClock.now() - failingMs) / minute);
    if (failingMs !== null) problems.push(`${name} fails since ${minutes} minutes (${reason ?? 'unknown'})`);
    else if (behind > behindAdvised) problems.push(`${name} is ${behind} events behind`);
  }
  if (problems.length === 0) return fine(`${newest} events; subscriptions: ${relays.length}, none behind or failing`);
  const isLong = relays.some(({ failing_since: ms }) => ms !== null && systemClock.now() - ms > hour);
  const cure =
    'See GET /api/v1/events/relays and /events/dead-letters: fix the cause of the refusals, then requeue them';
  return (isLong ? failed : warning)(problems.join('; '), cure);
}

/**
 * Lists users whose address counts as verified, though they set it themselves before addresses were verified. Rule:
 * ADDRESS-12.
 */
export async function checkAddresses({ read }: Database): Promise<Finding> {
  const own = await selectOwnAddresses(read);
  if (own.length === 0) return fine('No address counts as verified that a user set and no one confirmed');
  const listed = own.slice(0, addressesListed).map(({ userId, email }) => `${email} (${userId})`);
  const more = own.length > listed.length ? ` and ${own.length - listed.length} more` : '';
  const cure =
    'Ask each user; then as an administrator POST /api/v1/userAccount/email/confirm {"userId"}, or set the right address with PATCH /api/v1/users/:id/email';
  return warning(`Addresses that users set themselves count as verified: ${listed.join(', ')}${more}`, cure);
}

/** Whether tokens are stored that made each other, as an import of an earlier release could leave them. Rule: CRED-12. */
export async function checkTokens({ read }: Database): Promise<Finding> {
  const circles = await findTokenCircles(read);
  if (circles.length === 0) return fine('No token was made by itself, or by one that it made');
  const listed = circles.slice(0, circlesListed).map((ids) => shownCircle(ids));
  const more = circles.length > listed.length ? ` and ${circles.length - listed.length} more` : '';
  const cure = 'They were not made here: revoke one of each, which ends all of it: latchkey token revoke --help';
  return warning(`Tokens were made by each other, or by themselves: ${listed.join('; ')}${more}`, cure);
}

function shownCircle(ids: readonly string[]): string {
  const more = ids.length > circleShown ? ` and ${ids.length - circleShown} more` : '';
  return `${ids.slice(0, circleShown).join(', ')}${more}`;
}

/** Whether users who count as erased are: their data, how they signed in, their memberships. Rule: AUDIT-20. */
export async function checkErasures({ read }: Database): Promise<Finding> {
  const remaining = await selectRemainingUsers(read);
  if (remaining.length === 0) return fine('Nothing is left of any user whose data was erased');
  const listed = remaining.slice(0, remainingListed).map(({ userId, traces }) => `${userId} (${traces.join(', ')})`);
  const more = remaining.length > listed.length ? ` and ${remaining.length - listed.length} more` : '';
  const cure =
    'No erasure leaves that: find out who could write to the store, and compare a backup: latchkey audit verify --help';
  return failed(`Users count as erased of whom something is left: ${listed.join('; ')}${more}`, cure);
}

/** Verifies the audit log. Rules: AUDIT-11, CLI-21. */
export async function checkAudit(db: Database, input: Parameters<typeof verifyAudit>[1]): Promise<Finding> {
  const verdict = await verifyAudit(db, input);
  if (verdict.ok) return fine(`The audit log is sound: ${verdict.records} records`);
  const { sequence, fault } = verdict;
  const cure = 'Find out who could write to the store; compare a backup: latchkey audit verify --help';
  return failed(`The audit log is broken at record ${sequence}: ${auditFaults[fault]}`, cure);
}
