import { setImmediate } from 'node:timers/promises';
import type { Principal } from '../../access/principal.ts';
import { type Proof, refuseSignIn } from '../../access/proof.ts';
import type { ForCaller } from '../../access/reauthorization.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import type { Origin } from '../../base/origin.ts';
import type { Reader, Tx } from '../../db/database.ts';
import { selectActiveOrganization } from '../../db/members/organization.ts';
import { approveEmailMail, emailChangedMail, emailGivenBackMail } from '../../mail/address-notices.ts';
import { confirmEmailMail } from '../../mail/templates.ts';
import { appendEvents } from '../../outbox/outbox.ts';
import { updatedPayload } from '../../outbox/updated-user.ts';
import type { Services } from '../../services.ts';
import { maskedEmail } from '../../text/email-address.ts';
import { forgetCodes } from '../codes/public.ts';
import { endLinks, issueLinks } from '../links/public.ts';
import { hasPassword, proveCurrentPassword } from '../passwords/public.ts';
import {
  selectAddress,
  selectIsHeldUnverified,
  selectUnverifiedOwners,
  selectUser,
  updateToLastVerified,
  updateVerified,
} from './address-store.ts';
import { type Confirmation, issueAbout } from './confirmation-actions.ts';

type WritingServices = Pick<Services, 'clock' | 'newId'> & {
  readonly metrics: Pick<Services['metrics'], 'countActivity'>;
};

/** A user who got the last verified address back. */
export interface GivenBack {
  readonly userId: string;
  /** The address that the user held unverified. */
  readonly lostEmail: string;
  readonly email: string;
  readonly isDeleted: boolean;
}

/**
 * Takes addresses that are proved from the users who hold them unverified: each gets the last verified address back, with
 * audit row and `userUpdated`. Call `announceGivenBack` with the result after the commit. Rules: ADDRESS-6, ADDRESS-7.
 * @param wish `exceptId`: the user who is to have the address. `by` `null`: the operator, or the provider of single sign-on
 */
export async function giveBackAddresses(
  tx: Tx,
  services: WritingServices,
  input: {
    readonly orgId: string;
    readonly emails: readonly string[];
    readonly exceptId?: string;
    readonly by: Principal | { readonly userId: string } | null;
    readonly origin: Origin;
  },
): Promise<readonly GivenBack[]> {
  const { orgId, emails, exceptId = '', by, origin } = input;
  const owners = await selectUnverifiedOwners(tx, { orgId, emails, exceptId });
  const nowMs = services.clock.now();
  const given: GivenBack[] = [];
  // In one order for all.
  for (const owner of owners.toSorted((one, other) => (one.id < other.id ? -1 : 1))) {
    const { id: userId, email: lostEmail, recovery_email: email } = owner;
    if (email === null) continue;
    await updateToLastVerified(tx, userId, nowMs);
    await endLinks(tx, { userId, nowMs, reason: 'email-changed' });
    await forgetCodes(tx, userId);
    if (owner.is_deleted === 0) {
      const payload = updatedPayload({ ...owner, email, recovery_email: null });
      await appendEvents(tx, services, [{ eventType: 'userUpdated', payload }]);
    }
    const changes = { email: { before: lostEmail, after: email }, recoveryEmail: { before: email, after: null } };
    const record = { action: 'user.email-given-back', orgId, actor: by, subjectId: userId, origin, changes } as const;
    await appendAudit(tx, services, record);
    given.push({ userId, lostEmail, email, isDeleted: owner.is_deleted === 1 });
    // There may be a thousand: readers get their turn.
    await setImmediate();
  }
  return given;
}

/** Mails users that they have their last verified address back, once that is committed. Rule: ADDRESS-7. */
export async function announceGivenBack({ db, mail }: Services, given: readonly GivenBack[]): Promise<void> {
  const organization = given.length > 0 && (await selectActiveOrganization(db.read));
  if (!organization) return;
  for (const { lostEmail, email, isDeleted } of given) {
    const content = emailGivenBackMail({ organization: organization.name, lostEmail });
    if (!isDeleted) mail.sendLater('notice of an e-mail given back', { to: email, ...content });
  }
}

/**
 * Makes the address of a user the verified one; links and codes that went to the earlier one end. Changes nothing of an
 * address that is verified but its date. Rules: ADDRESS-1, ADDRESS-5.
 */
export async function verifyAddress(
  tx: Tx,
  services: WritingServices,
  input: {
    readonly userId: string;
    readonly by: Principal | { readonly userId: string };
    readonly origin: Origin;
    /** The way in which it was verified. */
    readonly how: 'link' | 'administrator' | 'single-sign-on';
  },
): Promise<void> {
  const { userId, by, origin, how } = input;
  const user = await selectAddress(tx, userId);
  if (!user) return;
  const { orgId, email, lastVerified } = user;
  const nowMs = services.clock.now();
  await updateVerified(tx, userId, { nowMs, isOwn: how === 'link' });
  if (lastVerified !== null) {
    await endLinks(tx, { userId, nowMs, reason: 'email-changed' });
    await forgetCodes(tx, userId);
    const payload = updatedPayload(await selectUser(tx, userId));
    await appendEvents(tx, services, [{ eventType: 'userUpdated', payload }]);
  }
  const changes = lastVerified === null ? {} : { recoveryEmail: { before: lastVerified, after: null } };
  const record = { action: 'user.email-confirmed', orgId, actor: by, subjectId: userId, origin } as const;
  await appendAudit(tx, services, { ...record, details: { email, how }, changes });
}

/** Verifies the address of a user whom the provider of single sign-on knows, if it is the one that is proved. Rule: ADDRESS-1. */
export async function verifyProved(
  tx: Tx,
  services: WritingServices,
  { userId, email, origin }: { readonly userId: string; readonly email: string; readonly origin: Origin },
): Promise<void> {
  const user = await selectAddress(tx, userId);
  if (user?.email !== email || user.lastVerified === null) return;
  await verifyAddress(tx, services, { userId, by: { userId }, origin, how: 'single-sign-on' });
}

/**
 * Makes the last verified address of a user the proved one: an unverified one of the account is given back first. Rule:
 * ADDRESS-14.
 */
export async function settleProved(
  tx: Tx,
  services: WritingServices,
  { userId, origin }: { readonly userId: string; readonly origin: Origin },
): Promise<void> {
  const user = await selectAddress(tx, userId);
  if (!user) return;
  const { orgId, email, lastVerified } = user;
  if (lastVerified !== null) await giveBackAddresses(tx, services, { orgId, emails: [email], by: null, origin });
  await verifyAddress(tx, services, { userId, by: { userId }, origin, how: 'single-sign-on' });
}

/** Whether the user of an account chose its verified address, and confirmed it by its link alone. Rule: ADDRESS-14. */
export async function hasOwnAddress(read: Reader, userId: string): Promise<boolean> {
  return (await selectAddress(read, userId))?.isOwn === 1;
}

/**
 * Runs before the transaction that changes an address: checks the current password of a user who gives it for their own
 * address (`null` without one), and whether a link can be mailed. Throws the 401 of a wrong password. Rules: ADDRESS-4,
 * ADDRESS-5.
 */
export async function prepareMove(
  services: Services,
  input: {
    readonly caller: Principal;
    readonly userId: string;
    /** `undefined`: the address stays. */
    readonly email: string | undefined;
    readonly currentPassword: string | undefined;
    readonly origin: Origin;
  },
): Promise<{ readonly proof: Proof | null; readonly canMail: boolean }> {
  const { caller, userId, email, currentPassword, origin } = input;
  const user = email === undefined ? undefined : await selectAddress(services.db.read, userId);
  if (!user || user.orgId !== caller.orgId || email === user.email) return { proof: null, canMail: false };
  const given = caller.userId === userId ? currentPassword : undefined;
  const proving = { user, actor: caller, action: 'user.updated', origin } as const;
  const proof = given === undefined ? null : await proveCurrentPassword(services, { ...proving, given });
  const hasMail = (await services.mail.settings()) !== null;
  return { proof, canMail: hasMail && (await services.limits.tryCount('confirmationMail', userId)) };
}

/** Consumes the proof of a current password, if there is one. Throws the 401 of a wrong password where it no longer holds. */
export async function requireProof(tx: Tx, proof: Proof | null): Promise<void> {
  if (proof && !(await proof.consume(tx))) throw refuseSignIn();
}

/**
 * Makes a link that confirms the unverified address of a user. On an account without a password, which cannot be asked
 * for, the owner of the last verified address has to approve the change first, and a token gets no link at all. `null`
 * where there is nothing to confirm. Rules: ADDRESS-4, ADDRESS-5, ADDRESS-16.
 * @param wish `isProved`: whether the current password was proved; otherwise it is asked for where the link leads
 */
export async function issueConfirmation(
  tx: Tx,
  services: Services,
  input: { readonly userId: string; readonly by: Principal; readonly isProved: boolean },
): Promise<Confirmation | null> {
  const { userId, by, isProved } = input;
  const canAsk = await hasPassword(tx, userId);
  if (by.kind === 'token' && !canAsk) return null;
  const issuing = { userId, createdBy: by.userId, needsPassword: canAsk && !isProved };
  return issueAbout(tx, services, { ...issuing, purpose: canAsk ? 'confirmation' : 'approval' });
}

/**
 * Mails a link to an address that another user holds unverified, by which the caller makes it the own one; returns whether
 * it did. The page always asks for the password: a user who waits for another link there must not give the address away.
 * Rule: ADDRESS-13.
 * @param wish `userId` has to be the caller, in a session
 */
export async function offerAddress(
  services: Services,
  { caller, write, userId, email }: ForCaller & { readonly userId: string; readonly email: string },
): Promise<boolean> {
  if (caller.kind !== 'session' || caller.userId !== userId) return false;
  const { orgId } = caller;
  const made = await write(async (tx) => {
    const user = await selectAddress(tx, userId);
    const isHeld = await selectIsHeldUnverified(tx, { orgId, email, forId: userId });
    if (user?.lastVerified !== null || !isHeld || !(await hasPassword(tx, userId))) return null;
    const inputs = [{ orgId, userId, needsPassword: true, email }];
    const issuing = { purpose: 'confirmation', setsPassword: true, createdBy: userId, delivery: 'sending' } as const;
    const [link] = await issueLinks(tx, services, { ...issuing, inputs });
    const about = { purpose: 'confirmation', email, lastVerified: user.email } as const;
    return link ? { ...about, link, needsPassword: true } : null;
  });
  if (made) await sendConfirmation(services, made);
  return made !== null;
}

/** Mails a link about an address, once it is committed. Rules: ADDRESS-5, ADDRESS-16. */
export async function sendConfirmation({ db, mail }: Services, confirmation: Confirmation): Promise<void> {
  const organization = (await selectActiveOrganization(db.read))?.name;
  if (organization === undefined) return;
  const { purpose, email, lastVerified, needsPassword } = confirmation;
  const link = { organization, link: confirmation.link.address.expose(), expiresIn: '48 hours' };
  if (purpose === 'approval') {
    mail.sendLater('approval of an e-mail', { to: lastVerified, ...approveEmailMail({ ...link, newEmail: email }) });
    return;
  }
  mail.sendLater('confirmation of an e-mail', {
    to: email,
    ...confirmEmailMail({ ...link, account: maskedEmail(lastVerified), needsPassword }),
  });
}

/** Mails the last verified address, and a new one that is verified, that the address changed. Rule: MAIL-6. */
export async function announceMove(
  { db, mail, limits }: Services,
  move: Record<'userId' | 'lastVerified' | 'email', string> & { readonly isVerified: boolean },
): Promise<void> {
  const { userId, lastVerified, email: newEmail, isVerified } = move;
  const organization = (await selectActiveOrganization(db.read))?.name;
  // A user who moves to and fro must not have us write to any address.
  if (organization === undefined || !(await limits.tryCount('emailNotice', userId))) return;
  const content = emailChangedMail({ organization, newEmail, isVerified });
  if (lastVerified !== newEmail) mail.sendLater('notice of a changed e-mail', { to: lastVerified, ...content });
  if (isVerified) mail.sendLater('notice of a changed e-mail', { to: newEmail, ...content });
}
