import { newPassword } from '../../access/password-rules.ts';
import { weaknessOf, wordsOf } from '../../access/password-strength.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { toTimestamp } from '../../base/clock.ts';
import { ApiError } from '../../base/errors.ts';
import type { Origin } from '../../base/origin.ts';
import { batchRows } from '../../db/batches.ts';
import { nextSlug } from '../../db/counters.ts';
import type { Reader, Tx } from '../../db/database.ts';
import { countActiveUsers, selectUsersByIds } from '../../db/members/users.ts';
import { appendEvents, type DomainEvent } from '../../outbox/outbox.ts';
import type { AllServices, Services } from '../../services.ts';
import { createDefaultGroups, joinDefaultGroup } from '../groups/public.ts';
import { setPassword } from '../passwords/public.ts';
import { endSessionsOfOrg } from '../sessions/public.ts';
import { createSignInSteps } from '../sign-in/public.ts';
import { revokeTokensOf } from '../tokens/public.ts';
import { addUser } from '../users/public.ts';
import {
  auditedOrganization,
  newOrganizationForm,
  newOrganizationRow,
  type OrganizationProfile,
  restoredOrganization,
  type StoredOrganization,
} from './org.ts';
import {
  type DeletedRows,
  deleteEverythingOf,
  insertOrganization,
  selectTheOrganization,
  updateOrganization,
} from './org-store.ts';

type WritingServices = Pick<Services, 'clock' | 'newId'> & {
  readonly metrics: Pick<Services['metrics'], 'countActivity'>;
};
type OperatorServices = WritingServices & Pick<AllServices, 'db'>;

interface NewOrganization {
  readonly profile: OrganizationProfile;
  readonly adminFullName: string;
  /** The administrator's password, already hashed. */
  readonly passwordHash: string;
  readonly origin: Origin;
}

/** The event that tells consumers of an organization. */
function orgCreated({ id, account_type, registered_name }: StoredOrganization): DomainEvent {
  const name = registered_name === null ? {} : { registeredName: registered_name };
  return { eventType: 'orgCreated', payload: { orgId: id, accountType: account_type, ...name } };
}

/**
 * Creates the organization with its groups, sign-in steps and first administrator. Throws `organizationExists` when
 * there is one. Rules: ORG-9 to ORG-12, ORG-14.
 */
export async function createOrganization(
  tx: Tx,
  services: WritingServices,
  { profile, adminFullName, passwordHash, origin }: NewOrganization,
): Promise<StoredOrganization> {
  const nowMs = services.clock.now();
  const orgId = services.newId();
  const organization = newOrganizationRow({ id: orgId, slug: await nextSlug(tx, 'org'), profile }, nowMs);
  if (!(await insertOrganization(tx, organization))) throw new ApiError('organizationExists');
  await createDefaultGroups(tx, services, { orgId });
  await createSignInSteps(tx, orgId, nowMs);
  await appendEvents(tx, services, [orgCreated(organization)]);
  const newUser = { orgId, email: profile.contactEmail, fullName: adminFullName };
  const { id: userId } = await addUser(tx, services, { ...newUser, syncAction: 'none' });
  await joinDefaultGroup(tx, { orgId, userId, type: 'admin' });
  await setPassword(tx, { userId, passwordHash, nowMs });
  const changes = changesBetween(null, auditedOrganization(organization));
  const record = { action: 'org.created', orgId, actor: { userId }, subjectId: orgId, origin, changes } as const;
  await appendAudit(tx, services, record);
  return organization;
}

/**
 * Sets the system up for its operator, with the input of POST /org. Throws `organizationExists` when there is an
 * organization. Rule: FIT-106.
 * @returns the problem in one line where the input is not allowed
 */
export async function setUpOrganization(
  services: OperatorServices & { readonly hash: (password: string) => Promise<string> },
  given: unknown,
  origin: Origin,
): Promise<OrganizationState | string> {
  const parsed = newOrganizationForm(newPassword).safeParse(given);
  if (!parsed.success) {
    const [problem] = parsed.error.issues;
    return `${problem?.path.join('.')} ${problem?.message}`;
  }
  const { adminFullName, password, ...profile } = parsed.data;
  const { contactEmail, registeredName, shortName } = profile;
  const weakness = await weaknessOf(password, wordsOf([adminFullName, contactEmail, registeredName, shortName]));
  if (weakness !== null) return `password ${weakness}`;
  const input = { profile, adminFullName, passwordHash: await services.hash(password), origin };
  const organization = await services.db.transaction((tx) => createOrganization(tx, services, input));
  return toOrganizationState(services.db.read, organization);
}

/** An organization as a dump tells of it. */
export interface ImportedOrganization {
  readonly id: string;
  readonly profile: OrganizationProfile;
  readonly onboardingStatus: StoredOrganization['onboarding_status'];
  /** Milliseconds since 1970. */
  readonly createdAt: number;
}

/**
 * Creates the organization of a dump with its groups and sign-in steps. It has no users yet: an administrator has to be
 * added in the same transaction. Throws `organizationExists` when there is one. Rule: CLI-17.
 * @param groupIds ids of the default groups, as far as the dump has them
 */
export async function createImportedOrganization(
  tx: Tx,
  services: WritingServices,
  input: {
    readonly organization: ImportedOrganization;
    readonly groupIds: Readonly<Partial<Record<'admin' | 'everyone' | 'standard', string>>>;
    readonly origin: Origin;
  },
): Promise<{ readonly slug: string }> {
  const { organization: given, groupIds, origin } = input;
  const { id: orgId, profile, createdAt } = given;
  const row = newOrganizationRow({ id: orgId, slug: await nextSlug(tx, 'org'), profile }, createdAt);
  const organization = { ...row, onboarding_status: given.onboardingStatus };
  if (!(await insertOrganization(tx, organization))) throw new ApiError('organizationExists');
  await createDefaultGroups(tx, services, { orgId, ids: groupIds, createdAt });
  await createSignInSteps(tx, orgId, services.clock.now());
  await appendEvents(tx, services, [orgCreated(organization)]);
  const changes = changesBetween(null, auditedOrganization(organization));
  const record = { action: 'org.created', orgId, actor: null, subjectId: orgId, origin, changes } as const;
  await appendAudit(tx, services, { ...record, details: { imported: true } });
  return { slug: organization.slug };
}

/** The organization of this system as its operator sees it. */
export interface OrganizationState {
  readonly id: string;
  readonly slug: string;
  readonly registeredName: string | null;
  readonly domain: string;
  readonly contactEmail: string;
  readonly isDeleted: boolean;
  /** Id of the user who deleted it. */
  readonly deletedBy: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly activeUsers: number;
}

/** Returns the state of the organization, deleted or not; `null` while there is none. */
export async function readOrganizationState(read: Reader): Promise<OrganizationState | null> {
  const org = await selectTheOrganization(read);
  return org ? toOrganizationState(read, org) : null;
}

async function toOrganizationState(read: Reader, org: StoredOrganization): Promise<OrganizationState> {
  return {
    id: org.id,
    slug: org.slug,
    registeredName: org.registered_name,
    domain: org.domain,
    contactEmail: org.contact_email,
    isDeleted: org.is_deleted === 1,
    deletedBy: org.deleted_by,
    createdAt: toTimestamp(org.created_at),
    updatedAt: toTimestamp(org.updated_at),
    activeUsers: await countActiveUsers(read, org.id),
  };
}

/** Why the operator's wish cannot be carried out. */
export type OperatorError = 'noOrganization' | 'notDeleted';

async function selectDeleted(tx: Tx): Promise<StoredOrganization | OperatorError> {
  const org = await selectTheOrganization(tx);
  if (!org) return 'noOrganization';
  return org.is_deleted === 1 ? org : 'notDeleted';
}

/** Writes an event for every active user again; returns their number. */
async function announceUsers(tx: Tx, services: WritingServices, orgId: string): Promise<number> {
  const users = await selectUsersByIds(tx, orgId);
  for (let start = 0; start < users.length; start += batchRows) {
    const events = users.slice(start, start + batchRows).map(
      ({ id: userId, email, fullName }): DomainEvent => ({
        eventType: 'userAdded',
        payload: { orgId, userId, email, fullName, syncAction: 'immediate' },
      }),
    );
    await appendEvents(tx, services, events);
  }
  return users.length;
}

/** Outcome of restoring an organization. */
export interface RestoredOrganization {
  readonly id: string;
  readonly slug: string;
  /** Users that consumers get events about again. */
  readonly activeUsers: number;
  readonly revokedTokens: number;
}

/**
 * Restores a deleted organization, with its users and groups. Its sessions and tokens stay revoked. Consumers, who
 * dropped it when it was deleted, get events about it and all its users as if they were new. Rules: CLI-8, EVENT-8.
 */
export function restoreOrganization(
  services: OperatorServices,
  origin: Origin,
): Promise<RestoredOrganization | OperatorError> {
  return services.db.transaction(async (tx) => {
    const org = await selectDeleted(tx);
    if (typeof org === 'string') return org;
    const { id: orgId, slug } = org;
    const nowMs = services.clock.now();
    await updateOrganization(tx, restoredOrganization(org, nowMs));
    await endSessionsOfOrg(tx, { orgId, nowMs });
    const reason = 'The organization was deleted';
    const revokedTokens = await revokeTokensOf(tx, services, { owner: { orgId }, orgId, by: null, reason, origin });
    await appendEvents(tx, services, [orgCreated(org)]);
    const activeUsers = await announceUsers(tx, services, orgId);
    const details = { activeUsers, revokedTokens };
    const changes = { isDeleted: { before: true, after: false } };
    const record = { action: 'org.restored', orgId, actor: null, subjectId: orgId, origin, details, changes } as const;
    await appendAudit(tx, services, record);
    return { id: orgId, slug, ...details };
  });
}

/** Counts of purged rows. */
export interface PurgedOrganization {
  readonly id: string;
  readonly slug: string;
  readonly removed: DeletedRows;
}

/**
 * Removes a deleted organization and all its data for good; afterwards a new one can be created. The event and audit
 * logs stay, and numbers continue. Rule: CLI-9.
 */
export function purgeOrganization(
  services: OperatorServices,
  origin: Origin,
): Promise<PurgedOrganization | OperatorError> {
  return services.db.transaction(async (tx) => {
    const org = await selectDeleted(tx);
    if (typeof org === 'string') return org;
    const { id: orgId, slug } = org;
    const removed = await deleteEverythingOf(tx, orgId);
    const details = { slug, removed };
    await appendAudit(tx, services, { action: 'org.purged', orgId, actor: null, subjectId: orgId, origin, details });
    return { id: orgId, slug, removed };
  });
}
