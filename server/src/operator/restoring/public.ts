import { appendAudit } from '../../audit-log/audit-log.ts';
import type { Origin } from '../../base/origin.ts';
import { batchRows } from '../../db/batches.ts';
import type { Tx } from '../../db/database.ts';
import { endSessionsOfOrg } from '../../features/sessions/public.ts';
import { revokeTokensOf } from '../../features/tokens/public.ts';
import { appendEvents, type DomainEvent } from '../../outbox/outbox.ts';
import type { Services } from '../../services.ts';
import {
  carriedTables,
  countSessions,
  deleteHalfDone,
  deletePasswords,
  replaceTables,
  selectOrganizationId,
  updateEventCounter,
  updateMemberships,
  updateServicesEnded,
  updateSignIns,
  updateTokens,
  updateUsers,
} from './carry-over-store.ts';
import {
  type CarriedOver,
  type LeftBehind,
  type PublishedUser,
  selectAdministrators,
  selectCarriedOver,
  selectDifferences,
  selectIsAlike,
  selectIsContinued,
  selectLeftBehind,
  selectRenamed,
} from './present-store.ts';

type WritingServices = Pick<Services, 'clock' | 'newId'> & {
  readonly metrics: Pick<Services['metrics'], 'countActivity'>;
};

const reason = 'A back-up was restored';
/** More numbers than are ever used between a back-up and the loss of the store. */
const skippedEvents = 1_000_000;

/** Why the present store cannot tell what ended since a back-up was made. */
type JournalFault = 'otherOrganization' | 'otherLog' | 'otherTables';
/** Why nothing is carried over. */
export type CarryOverError = JournalFault | 'noAdministrator';

/** State that a restored store took over from the present one. */
export interface Carried {
  readonly ended: CarriedOver;
  readonly leftBehind: LeftBehind;
  /** Number of events that tell consumers the differences. */
  readonly events: number;
}

function orgRenamed({ orgId, registeredName }: { orgId: string; registeredName: string | null }): DomainEvent {
  const name = registeredName === null ? {} : { registeredName };
  return { eventType: 'orgUpdated', payload: { orgId, ...name } };
}

function userUpdated({ orgId, userId, email, fullName, ...rest }: PublishedUser): DomainEvent {
  const set = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null));
  return { eventType: 'userUpdated', payload: { orgId, userId, email, fullName, ...set } };
}

/** Writes events about the differences for consumers, who know the present store; returns their number. */
async function announceDifferences(tx: Tx, services: WritingServices): Promise<number> {
  // Consumers that dropped a deleted organization get it again when it is restored.
  if ((await selectAdministrators(tx)) === null) return 0;
  const { gone, back, other } = await selectDifferences(tx);
  const renamed = await selectRenamed(tx);
  const events: readonly DomainEvent[] = [
    ...(renamed ? [orgRenamed(renamed)] : []),
    ...gone.map(({ orgId, userId, email }) => ({
      eventType: 'userDeleted' as const,
      payload: { orgId, userId, email },
    })),
    ...back.map(({ orgId, userId, email, fullName }) => ({
      eventType: 'userAdded' as const,
      payload: { orgId, userId, email, fullName, syncAction: 'immediate' as const },
    })),
    ...other.map(userUpdated),
  ];
  for (let start = 0; start < events.length; start += batchRows) {
    await appendEvents(tx, services, events.slice(start, start + batchRows));
  }
  return events.length;
}

/** From this schema on audit records have hashes; those of before got them, each store its own, when they were migrated. */
const firstChained = 8;

async function faultOf(tx: Tx, schema: number): Promise<JournalFault | null> {
  if (!(await selectIsAlike(tx, carriedTables))) return 'otherTables';
  const { organization, log } = await selectIsContinued(tx, schema < firstChained ? 'id' : 'hash');
  if (!organization) return 'otherOrganization';
  return log ? null : 'otherLog';
}

/**
 * Ends in a restored store what ended since its back-up, as recorded in the present store (the schema `present`, see
 * `withAttachedStore`): credentials and roles are as they are now; what was created since is left out. Both logs continue
 * from those of the present store, and consumers get events about the differences. Nothing that ended becomes valid
 * again. Rules: CLI-27, CLI-28.
 * @param schema the version that the back-up was made with, before it was migrated
 */
export async function carryOver(tx: Tx, services: WritingServices, schema: number): Promise<Carried | CarryOverError> {
  const fault = await faultOf(tx, schema);
  if (fault) return fault;
  const ended = await selectCarriedOver(tx);
  const leftBehind = await selectLeftBehind(tx);
  await updateUsers(tx);
  await updateMemberships(tx);
  if ((await selectAdministrators(tx)) === 0) return 'noAdministrator';
  await updateSignIns(tx);
  await updateTokens(tx, services.clock.now(), reason);
  await replaceTables(tx);
  await deleteHalfDone(tx);
  return { ended, leftBehind, events: await announceDifferences(tx, services) };
}

/**
 * Prepares a restored store without knowledge of what ended since its back-up: unfinished work is dropped, and numbers
 * of events that may have been used since are skipped. Rule: CLI-28.
 */
export async function continueWithoutJournal(tx: Tx): Promise<void> {
  await deleteHalfDone(tx);
  await updateEventCounter(tx, skippedEvents);
}

/** Credentials to end when a store is restored; each value includes those before it. */
export type Revocation = 'none' | 'sessions' | 'tokens' | 'all';

/** Credentials that were ended at the operator's request. */
export interface Revoked {
  readonly sessions: number;
  readonly tokens: number;
  readonly services: number;
  readonly passwords: number;
}

/**
 * Ends, in a restored store, sessions and links; with `tokens` also personal access tokens and services; with `all`
 * passwords too. Rule: CLI-29.
 */
export async function revokeRestored(
  tx: Tx,
  services: WritingServices,
  { input, origin }: { readonly input: Revocation; readonly origin: Origin },
): Promise<Revoked> {
  const nowMs = services.clock.now();
  const orgId = await selectOrganizationId(tx);
  const revoked = { sessions: 0, tokens: 0, services: 0, passwords: 0 };
  if (input === 'none') return revoked;
  revoked.sessions = await countSessions(tx);
  if (orgId !== null) await endSessionsOfOrg(tx, { orgId, nowMs });
  if (input === 'sessions') return revoked;
  if (orgId !== null) {
    revoked.tokens = await revokeTokensOf(tx, services, { owner: { orgId }, orgId, by: null, reason, origin });
  }
  revoked.services = await updateServicesEnded(tx, nowMs);
  if (input === 'all') revoked.passwords = await deletePasswords(tx);
  return revoked;
}

/** Records that the store was restored, in one record. Rule: CLI-27. */
export async function recordRestored(
  tx: Tx,
  services: WritingServices,
  { details, origin }: { readonly details: Readonly<Record<string, unknown>>; readonly origin: Origin },
): Promise<void> {
  const orgId = await selectOrganizationId(tx);
  await appendAudit(tx, services, { action: 'store.restored', orgId, actor: null, subjectId: orgId, origin, details });
}
