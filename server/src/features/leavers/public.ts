import { z } from 'zod';
import type { Principal } from '../../access/principal.ts';
import { toTimestamp } from '../../base/clock.ts';
import type { Tx } from '../../db/database.ts';
import { selectAdministratorTargets } from '../../db/members/mail-targets.ts';
import { selectActiveOrganization } from '../../db/members/organization.ts';
import { selectNames } from '../../db/members/users.ts';
import { administratorLeftMail } from '../../mail/templates.ts';
import type { Services } from '../../services.ts';
import { endLinksShownTo } from '../links/public.ts';
import { listClientsOf } from '../service-clients/public.ts';
import { listWebhooksOf } from '../webhooks/public.ts';
import { selectSettingsOf, selectSignInStepsOf } from './left-setting-store.ts';
import { isEmpty, type NeedsReview, needsReview } from './review.ts';

/** Administrators that get a notice, and users and things that it names, at most. */
const recipientsMax = 100;
const namedMax = 20;

/** Settings as a notice names them. */
const settingNames = { oidc: 'single sign-on', smtp: 'mail', signInSteps: 'sign-in steps' } as const;

/** Field that a response to a demotion or a deletion has. Rule: LEAVER-4. */
export const reviewResponse = z.object({
  message: z.string(),
  needsReview: needsReview
    .optional()
    .describe('What the former administrators created, or whose secret or address they set; it stays active'),
});

/**
 * Ends the links that users were shown who were demoted or deleted in the transaction, and answers what else they made, or
 * hold the secret or address of, that goes on. Rules: LEAVER-4, LEAVER-9.
 */
export async function settleLeavers(
  tx: Tx,
  { clock }: Pick<Services, 'clock'>,
  userIds: readonly string[],
): Promise<NeedsReview> {
  if (userIds.length === 0) return { serviceClients: [], webhooks: [], settings: [] };
  const nowMs = clock.now();
  await endLinksShownTo(tx, userIds, nowMs);
  const steps = (await selectSignInStepsOf(tx, userIds)).map((one) => ({ name: 'signInSteps' as const, ...one }));
  const settings = [...(await selectSettingsOf(tx, userIds)), ...steps];
  return {
    serviceClients: await listClientsOf(tx, userIds, nowMs),
    webhooks: await listWebhooksOf(tx, userIds, nowMs),
    settings: settings.map((one) => ({ ...one, updatedAt: toTimestamp(one.updatedAt) })),
  };
}

/** The review, for a caller who may list service clients and webhooks: without `org:admin` a token gets none. Rule: LEAVER-4. */
export function reviewFor(caller: Principal, review: NeedsReview): { readonly needsReview?: NeedsReview } {
  return caller.kind === 'session' || caller.scopes.has('org:admin') ? { needsReview: review } : {};
}

/** The review after a deletion: none where the user, who may never have been an administrator, left nothing behind. */
export function reviewForDeleted(caller: Principal, review: NeedsReview): { readonly needsReview?: NeedsReview } {
  return isEmpty(review) ? {} : reviewFor(caller, review);
}

/** A demotion or deletion that is committed. */
interface Departure {
  readonly caller: Principal;
  readonly kind: 'demoted' | 'deleted';
  readonly userIds: readonly string[];
  readonly review: NeedsReview;
}

async function writeNotice({ db }: Services, { caller, kind, userIds, review }: Departure) {
  const organization = (await selectActiveOrganization(db.read))?.name;
  const names = await selectNames(db.read, [...userIds, caller.userId]);
  const nameOf = (id: string) => names.get(id) ?? id;
  if (organization === undefined) return null;
  return administratorLeftMail({
    organization,
    kind,
    users: userIds.map(nameOf),
    by: nameOf(caller.userId),
    serviceClients: review.serviceClients.slice(0, namedMax).map(({ name }) => name),
    // The rest of an address may be a secret.
    webhooks: review.webhooks.slice(0, namedMax).map(({ url }) => new URL(url).host),
    settings: review.settings.map(({ name }) => settingNames[name]),
  });
}

async function notify(services: Services, departure: Departure): Promise<void> {
  const { db, mail, limits } = services;
  if (!(await mail.settings())) return;
  const userIds: string[] = [];
  for (const userId of departure.userIds.slice(0, namedMax)) {
    // Promoting and demoting in turn must not fill mailboxes.
    if (await limits.tryCount('leaverNotice', userId)) userIds.push(userId);
  }
  const email = userIds.length === 0 ? null : await writeNotice(services, { ...departure, userIds });
  if (!email) return;
  const recipients = await selectAdministratorTargets(db.read, departure.caller.orgId, recipientsMax);
  for (const { mailTo } of recipients) {
    mail.sendLater('notice of an administrator who left', { to: mailTo, ...email });
  }
}

/**
 * Notifies the remaining administrators, after the response and where mail is configured: of every demotion, and of the
 * deletion of users who created something that stays active. Rule: LEAVER-6.
 */
export function notifyAdministrators(services: Services, departure: Departure): void {
  const { kind, userIds, review } = departure;
  if (userIds.length === 0 || (kind === 'deleted' && isEmpty(review))) return;
  services.afterResponse.run('notices of an administrator who left', () => notify(services, departure));
}
