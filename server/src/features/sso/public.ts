import type { Principal } from '../../access/principal.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { ApiError } from '../../base/errors.ts';
import type { Origin } from '../../base/origin.ts';
import type { Tx } from '../../db/database.ts';
import { selectActiveOrganization } from '../../db/members/organization.ts';
import { selectUserById } from '../../db/members/users.ts';
import { firstSignOnMail } from '../../mail/address-notices.ts';
import type { OidcIdentity, OidcSettings } from '../../oidc/oidc.ts';
import type { AllServices, Services } from '../../services.ts';
import { domainOf, vouchedEmail } from '../../text/email-address.ts';
import { plainText } from '../../text/plain-text.ts';
import {
  announceGivenBack,
  type GivenBack,
  giveBackAddresses,
  hasOwnAddress,
  settleProved,
  verifyProved,
} from '../addresses/public.ts';
import { joinExistingGroups } from '../groups/public.ts';
import {
  findOwner,
  hasAdministratorSignedIn,
  issueTicket,
  isVisitEnded,
  linkIdentity,
  unlinkIdentities,
} from '../identities/public.ts';
import { endCredentials, endSignInsOf } from '../sessions/public.ts';
import { dependsOn, signsInBy } from '../sign-in/public.ts';
import { revokeTokensOf } from '../tokens/public.ts';
import { addUser, findOwnersOfEmails, requireUser } from '../users/public.ts';
import { type OtherCredentials, selectOtherCredentials } from './credential-store.ts';
import type { OidcProblem } from './oidc-flow.ts';

/** A user who comes back from the provider. */
interface Arrival {
  readonly identity: OidcIdentity;
  readonly settings: OidcSettings;
  readonly email: string;
  readonly orgId: string;
  readonly signInId: string;
  /** When the user went to the provider. */
  readonly begunMs: number;
  readonly origin: Origin;
}

/** An account, and the address changes that came with it. */
interface Account {
  readonly userId: string | null;
  readonly givenBack: readonly GivenBack[];
  /** Other credentials of an account that was just linked; `null`: it was linked before, or is new. */
  readonly others: (OtherCredentials & { readonly areEnded: boolean }) | null;
  /** Why there is none, for the log; `null`: there is one. */
  readonly problem: string | null;
}

/** Why a user who arrives gets no account. */
const problems = {
  taken: 'the account with this address is linked to another user of the provider',
  gone: 'the user is deleted, and no other account has this address',
  notAllowed: 'no account has this address, and its domain is not in allowedDomains',
  deleted: 'the account with this address is deleted',
  ended: 'all sessions of the user were ended during the sign-in',
};

/** Creates an account for a user of an allowed domain. Rule: AUTH-48. */
async function addNewUser(
  tx: Tx,
  services: Services,
  arrival: Arrival,
): Promise<{ readonly userId: string } | 'notAllowed' | 'deleted'> {
  const { identity, settings, email, orgId, origin } = arrival;
  if ((await findOwnersOfEmails(tx, orgId, [email])).length > 0) return 'deleted';
  if (!settings.allowedDomains.includes(domainOf(email))) return 'notAllowed';
  const fullName = plainText().safeParse(identity.name).data ?? email.slice(0, email.lastIndexOf('@'));
  const { id } = await addUser(tx, services, { orgId, email, fullName, syncAction: 'immediate' });
  await joinExistingGroups(tx, { orgId, userId: id, groupIds: settings.groupIds });
  const record = { action: 'user.created', orgId, actor: null, subjectId: id, origin } as const;
  await appendAudit(tx, services, {
    ...record,
    details: { by: 'oidc' },
    changes: changesBetween(null, { email, fullName }),
  });
  return { userId: id };
}

/** Takes the address that is proved from users who hold it unverified; the linked user has it verified. Rules: ADDRESS-1, ADDRESS-6. */
async function settleAddress(
  tx: Tx,
  services: Services,
  { email, orgId, origin, linkedId }: Arrival & { readonly linkedId: string | null },
): Promise<readonly GivenBack[]> {
  const exceptId = linkedId ?? '';
  const givenBack = await giveBackAddresses(tx, services, { orgId, emails: [email], exceptId, by: null, origin });
  if (linkedId !== null) await verifyProved(tx, services, { userId: linkedId, email, origin });
  return givenBack;
}

/**
 * Ends whatever acted as the user of an account before its address was proved: the user chose that address, and anyone who
 * reads mail there may have confirmed it without knowing the account. Rule: ADDRESS-14.
 */
async function endEarlier(
  tx: Tx,
  services: Services,
  { userId, orgId, origin }: Arrival & { readonly userId: string },
): Promise<void> {
  await endCredentials(tx, { userId, nowMs: services.clock.now(), reason: 'address-proved' });
  // Their subjects stay known, so that AUTH-72 holds for them too.
  await unlinkIdentities(tx, services, userId);
  const reason = 'The address was proved by single sign-on';
  await revokeTokensOf(tx, services, { owner: { userId }, orgId, by: null, reason, origin });
  await settleProved(tx, services, { userId, origin });
}

/** The account of a user who arrives: as linked before, by the verified address, or a new one. */
async function findAccount(tx: Tx, services: Services, arrival: Arrival): Promise<Account> {
  const { identity } = arrival;
  const owner = await findOwner(tx, arrival);
  if (typeof owner === 'object' && owner && (await isVisitEnded(tx, owner.userId, arrival.begunMs))) {
    return { userId: null, givenBack: [], others: null, problem: problems.ended };
  }
  const linkedId = typeof owner === 'object' && owner?.isLinked ? owner.userId : null;
  const givenBack = await settleAddress(tx, services, { ...arrival, linkedId });
  const nothing = { userId: null, givenBack, others: null, problem: null };
  if (typeof owner === 'string') return { ...nothing, problem: problems[owner] };
  if (linkedId !== null) return { ...nothing, userId: linkedId };
  const found = owner ?? (await addNewUser(tx, services, arrival));
  if (typeof found === 'string') return { ...nothing, problem: problems[found] };
  const { userId } = found;
  const others = owner && (await selectOtherCredentials(tx, userId, services.clock.now()));
  const isOwn = owner !== null && (await hasOwnAddress(tx, userId));
  if (isOwn) await endEarlier(tx, services, { ...arrival, userId });
  await linkIdentity(tx, services, { identity, userId });
  return { ...nothing, userId, others: others && { ...others, areEnded: isOwn } };
}

/** Mails the users concerned what came of an arrival, once it is committed. Rules: ADDRESS-7, ADDRESS-10. */
async function announce(
  services: Services,
  { givenBack, others }: Pick<Account, 'givenBack' | 'others'>,
  to: string,
): Promise<void> {
  await announceGivenBack(services, givenBack);
  const organization = await selectActiveOrganization(services.db.read);
  if (!organization || !others || !(others.hasPassword || others.sessions > 0 || others.tokens > 0)) return;
  const content = firstSignOnMail({ organization: organization.name, ...others });
  services.mail.sendLater('notice of a first single sign-on', { to, ...content });
}

/** Result of an arrival: a ticket and its owner for the sign-in page, or a problem, and its cause for the log. */
type Outcome =
  | { readonly oidc: string; readonly email: string }
  | { readonly error: OidcProblem; readonly cause: string };

const refusal = (error: OidcProblem, cause: string): Outcome => ({ error, cause });

/**
 * Returns the result for the sign-in page when a user comes back: a ticket and its owner, or the problem. Rules:
 * AUTH-48, AUTH-49, AUTH-55, AUTH-74, FIT-4.
 */
export async function receiveArrival(
  services: AllServices,
  { identity, ...visit }: Omit<Arrival, 'email' | 'orgId'>,
): Promise<Outcome> {
  if (identity.addressProblem !== null) return refusal('email_not_verified', identity.addressProblem);
  const email = vouchedEmail(identity.email ?? '');
  if (email === null)
    return refusal('email_not_verified', 'the address is not one that can be stored as it is spelled');
  const { outcome, ...done } = await services.db.transaction(async (tx) => {
    const nothing = { givenBack: [], others: null };
    const organization = await selectActiveOrganization(tx);
    if (!organization) return { ...nothing, outcome: refusal('no_account', 'there is no organization') };
    const { id: orgId } = organization;
    // No one gets an account by a method that is not in use.
    const isUsed = await signsInBy(tx, orgId, 'oidc');
    if (!isUsed) return { ...nothing, outcome: refusal('not_configured', 'no sign-in step allows the method oidc') };
    const account = await findAccount(tx, services, { ...visit, identity, email, orgId });
    const { userId, problem } = account;
    if (userId === null) {
      const error = problem === problems.ended ? 'expired' : 'no_account';
      return { ...account, outcome: refusal(error, problem ?? '') };
    }
    const user = await requireUser(tx, orgId, userId);
    const ticket = await issueTicket(tx, services, { userId, signInId: visit.signInId, identity });
    return { ...account, outcome: { oidc: ticket.expose(), email: user.email } };
  });
  await announce(services, done, email);
  return outcome;
}

/** Who unlinks whom. */
interface Unlinking {
  readonly userId: string;
  readonly orgId: string;
  /** `null`: the operator. */
  readonly by: Principal | null;
  /** Whether users may depend on the links of administrators; `null` is not checked: the operator has other ways in. */
  readonly guard: { readonly settings: OidcSettings; readonly lacking: 'otp' | null } | null;
  readonly origin: Origin;
}

/** Throws `lastSignOn` where a step depends on single sign-on, and no other administrator has signed in by it. */
async function keepOneLink(tx: Tx, { userId, orgId, guard }: Unlinking): Promise<void> {
  if (!guard || !(await dependsOn(tx, orgId, { method: 'oidc', lacking: guard.lacking }))) return;
  const { settings } = guard;
  if (await hasAdministratorSignedIn(tx, orgId, { settings, exceptId: userId })) return;
  if (await hasAdministratorSignedIn(tx, orgId, { settings })) throw new ApiError('lastSignOn');
}

/**
 * Forgets the links of an active user to identities, and ends every session of the user, and what is not used yet;
 * nothing where there is no link. Throws `notFound` and `lastSignOn`. Rule: FIT-8.
 */
export async function unlinkUser(
  tx: Tx,
  services: Pick<AllServices, 'clock' | 'config' | 'newId'> & {
    readonly metrics: Pick<AllServices['metrics'], 'countActivity'>;
  },
  unlinking: Unlinking,
): Promise<{ readonly unlinked: number; readonly ended: number }> {
  const { userId, orgId, by, origin } = unlinking;
  const user = await selectUserById(tx, userId);
  if (user?.orgId !== orgId) throw new ApiError('notFound');
  await keepOneLink(tx, unlinking);
  const issuers = await unlinkIdentities(tx, services, userId);
  if (issuers.length === 0) return { unlinked: 0, ended: 0 };
  const ended = await endSignInsOf(tx, services, userId);
  const record = { action: 'user.unlinked', orgId, actor: by, subjectId: userId, origin } as const;
  await appendAudit(tx, services, { ...record, details: { issuers, ended } });
  return { unlinked: issuers.length, ended };
}
