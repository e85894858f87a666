import { setImmediate } from 'node:timers/promises';
import type { Principal } from '../../access/principal.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { ApiError } from '../../base/errors.ts';
import type { Origin } from '../../base/origin.ts';
import type { Tx } from '../../db/database.ts';
import { type Organization, selectActiveOrganization } from '../../db/members/organization.ts';
import type { Mail } from '../../mail/mail.ts';
import { MailError } from '../../mail/mail-error.ts';
import { invitationMail } from '../../mail/templates.ts';
import type { Services } from '../../services.ts';
import { type GivenBack, giveBackAddresses } from '../addresses/public.ts';
import { findAdministratorsAmong, joinGroups } from '../groups/public.ts';
import { type IssuedLink, issueLinks, noteDeliveries } from '../links/public.ts';
import { signsInBy } from '../sign-in/public.ts';
import { addUsers, findOwnersOfEmails, restoreDeletedUser } from '../users/public.ts';
import { nameOf, requestMsMax, sortInvitees } from './invitation.ts';
import { selectUnreached } from './invitation-store.ts';

/**
 * Rejects invitations by mail where they are impossible: `businessRequired` for an individual account,
 * `mailNotConfigured` without a mail server. Rules: INVITE-2, INVITE-21.
 */
export async function requireInviting({ db, mail }: Services): Promise<void> {
  const organization = await selectActiveOrganization(db.read);
  if (organization?.accountType !== 'business') throw new ApiError('businessRequired');
  if (!(await mail.settings())) throw new ApiError('mailNotConfigured');
}

/** A user who is to get an invitation. */
export interface Invitee {
  readonly id: string;
  readonly email: string;
  /** Address for recovery mail; `null`: `email`. */
  readonly recovery_email: string | null;
  /** The user had been a member before. */
  readonly isReturning: boolean;
}

/** Input of an invitation: addresses, groups, and the inviting user. */
export interface InvitingInput {
  readonly caller: Principal;
  /** Normalized, each once. */
  readonly emails: readonly string[];
  /** Of groups that exist. */
  readonly groupIds: readonly string[];
  readonly origin: Origin;
}

/** Writes the audit record. Rule: AUDIT-1. */
async function record(
  tx: Tx,
  services: Services,
  {
    caller,
    origin,
    joined,
    added,
    unreached,
    userIds,
  }: InvitingInput & {
    readonly added: readonly { readonly id: string; readonly email: string; readonly fullName: string }[];
    readonly unreached: readonly string[];
    readonly userIds: readonly string[];
    /** By group, who came into it. */
    readonly joined: ReadonlyMap<string, readonly string[]>;
  },
): Promise<void> {
  const common = { orgId: caller.orgId, actor: caller, origin };
  await appendAudit(
    tx,
    services,
    ...added.map(({ id: subjectId, email, fullName }) => ({
      ...common,
      action: 'user.created' as const,
      subjectId,
      details: { invited: true },
      changes: changesBetween(null, { email, fullName }),
    })),
    ...unreached.map((subjectId) => ({ ...common, action: 'user.invited' as const, subjectId })),
    ...[...joined].map(([subjectId, after]) => ({
      ...common,
      action: 'group.members-added' as const,
      subjectId,
      details: { userIds },
      changes: { members: { before: [], after } },
    })),
  );
}

/**
 * Adds those addressed users who are not members, or were never reached by mail, and adds them to the groups. Rules:
 * INVITE-6 to INVITE-9, INVITE-15.
 * @returns the users who are to get an invitation, none where all have an active account; and the users who lost an
 * address that belongs to one of those
 */
export async function addInvitees(
  tx: Tx,
  services: Services,
  input: InvitingInput,
): Promise<{ readonly invitees: readonly Invitee[]; readonly givenBack: readonly GivenBack[] }> {
  const { caller, emails, groupIds, origin } = input;
  const { orgId } = caller;
  const givenBack = await giveBackAddresses(tx, services, { orgId, emails, by: caller, origin });
  const owners = await findOwnersOfEmails(tx, orgId, emails);
  const query = { orgId, userIds: owners.map(({ id }) => id), nowMs: services.clock.now() };
  const wereReturning = await selectUnreached(tx, query);
  const { unknown, deleted, unreached } = sortInvitees(emails, owners, new Set(wereReturning.keys()));
  const addressOf = (place: number) => unknown[place] ?? '';
  const newUser = (_: number, place: number) => ({ email: addressOf(place), fullName: nameOf(addressOf(place)) });
  const addedIds = await addUsers(tx, services, { orgId, count: unknown.length, newUser });
  const added = addedIds.map((id, place) => ({ id, ...newUser(0, place) }));
  for (const user of deleted) {
    const { revokedTokens } = await restoreDeletedUser(tx, services, { deleted: user, by: caller, origin });
    const details = { invited: true, revokedTokens };
    const changes = { isDeleted: { before: true, after: false } };
    const restored = { action: 'user.restored', orgId, actor: caller, subjectId: user.id, origin } as const;
    await appendAudit(tx, services, { ...restored, details, changes });
    // There may be a thousand: readers get their turn.
    await setImmediate();
  }
  const invitees = [
    ...added.map(({ id, email }) => ({ id, email, recovery_email: null, isReturning: false })),
    ...deleted.map((user) => ({ ...user, isReturning: true })),
    ...unreached.map((user) => ({ ...user, isReturning: wereReturning.get(user.id) ?? false })),
  ];
  const userIds = invitees.map(({ id }) => id);
  const joined = await joinGroups(tx, { groupIds, userIds });
  await record(tx, services, { ...input, joined, added, unreached: unreached.map(({ id }) => id), userIds });
  return { invitees, givenBack };
}

/** An invitation that is made, and not yet sent. */
interface Invitation {
  readonly invitee: Invitee;
  readonly link: IssuedLink;
}

/** Invitations that are made and not yet sent. */
export interface Invitations {
  readonly organization: Organization;
  readonly invitations: readonly Invitation[];
}

/**
 * Creates the links of invitations, by the sign-in steps of the organization. Throws `administratorBySession` for a
 * token that would create a link to an administrator's account. Rules: INVITE-11, INVITE-22, LEAVER-2.
 */
export async function makeInvitations(
  tx: Tx,
  services: Services,
  { invitees, by }: { readonly invitees: readonly Invitee[]; readonly by: Principal },
): Promise<Invitations> {
  const { orgId } = by;
  const userIds = invitees.map(({ id }) => id);
  const administrators = by.kind === 'token' ? await findAdministratorsAmong(tx, { orgId, userIds }) : [];
  if (administrators.length > 0) throw new ApiError('administratorBySession');
  const organization = await selectActiveOrganization(tx);
  if (!organization) throw new ApiError('notFound');
  const inputs = invitees.map(({ id: userId, isReturning }) => ({ orgId, userId, isReturning }));
  const setsPassword = await signsInBy(tx, orgId, 'password');
  const issuing = { purpose: 'invitation', setsPassword, createdBy: by.userId, delivery: 'sending' } as const;
  const links = await issueLinks(tx, services, { ...issuing, inputs });
  const invitations = links.flatMap((link, place) => {
    const invitee = invitees[place];
    return invitee ? [{ invitee, link }] : [];
  });
  return { organization, invitations };
}

function emailTo({ invitee, link }: Invitation, organization: string): Mail {
  const email = invitationMail({
    organization,
    link: link.address.expose(),
    expiresIn: link.expiresAtMs === null ? null : '48 hours',
    isReturning: invitee.isReturning,
  });
  // As powerful as recovery mail, an invitation goes where that goes. Rule: AUTH-49.
  return { to: invitee.recovery_email ?? invitee.email, ...email };
}

/** Why mails did not go out, for the log: how many, and what became of the first. */
function causeOf(outcomes: readonly (MailError | null)[]): string {
  const failures = outcomes.filter((outcome) => outcome !== null);
  const [first] = failures;
  const hint = first?.hint ? ` ${first.hint}` : '';
  return `${failures.length} of ${outcomes.length} mails, the first: ${first?.kind} ${first?.serverMessage}${hint}`;
}

/**
 * Sends invitations and notes what became of each. Throws `inviteMailFailed`, naming the addresses of those that did not
 * go out, unless all did; what has been committed stays. Rules: INVITE-14, INVITE-17, MAIL-2.
 * @param startedMs when the request began, by the monotonic clock
 */
export async function sendInvitations(
  services: Services,
  { organization, invitations }: Invitations,
  startedMs: number,
): Promise<void> {
  // There may be a thousand emails to write: other requests get their turn.
  await setImmediate();
  const emails = invitations.map((invitation) => emailTo(invitation, organization.name));
  const msMax = Math.max(0, requestMsMax - (performance.now() - startedMs));
  const outcomes =
    (await services.mail.sendAll(emails, { msMax })) ??
    emails.map(() => new MailError('unreachable', 'Mail is not configured any more.'));
  const ids = invitations.map(({ link }) => link.id);
  await noteDeliveries(services, {
    sent: ids.filter((_, place) => outcomes[place] === null),
    failed: ids.filter((_, place) => outcomes[place] !== null),
  });
  const failed = invitations.filter((_, place) => outcomes[place] !== null).map(({ invitee }) => invitee.email);
  if (failed.length > 0) throw new ApiError('inviteMailFailed', { more: { failed }, cause: causeOf(outcomes) });
}
