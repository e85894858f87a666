import { z } from 'zod';
import { networkOf } from '../../access/limits.ts';
import { appendAudit } from '../../audit/audit-log.ts';
import { changesBetween } from '../../audit/changes.ts';
import type { Tx } from '../../db/database.ts';
import { selectActiveOrganization } from '../../db/organization.ts';
import { endpoint, WithHeaders } from '../../http/endpoint.ts';
import type { Origin } from '../../origin.ts';
import type { Services } from '../../services.ts';
import { OidcError, type OidcIdentity, type OidcSettings, oidcRedirectUri } from '../../sso/oidc.ts';
import { domainOf, normalizeEmail } from '../../text/email-address.ts';
import { plainText } from '../../text/plain-text.ts';
import { joinExistingGroups } from '../groups/contract.ts';
import { findOwner, issueTicket, linkIdentity } from '../identities/contract.ts';
import { signsInBy } from '../sign-in/contract.ts';
import { addPerson, findHoldersOfEmails, requirePerson } from '../users/contract.ts';
import { backToSignIn, flowOf, type OidcProblem, readFlowCookie, returnUrl } from './oidc-flow.ts';

interface Arrival {
  readonly identity: OidcIdentity;
  readonly settings: OidcSettings;
  readonly email: string;
  readonly orgId: string;
  readonly signInId: string;
  readonly origin: Origin;
}

/** Makes an account for somebody of an allowed domain. Rule: AUTH-48. */
async function addNewcomer(tx: Tx, services: Services, arrival: Arrival): Promise<string | null> {
  const { identity, settings, email, orgId, origin } = arrival;
  const isAllowed = settings.allowedDomains.includes(domainOf(email));
  if (!isAllowed || (await findHoldersOfEmails(tx, orgId, [email])).length > 0) return null;
  const fullName = plainText().safeParse(identity.name).data ?? email.slice(0, email.lastIndexOf('@'));
  const { id } = await addPerson(tx, services, { orgId, email, fullName, syncAction: 'immediate' });
  await joinExistingGroups(tx, { orgId, userId: id, groupIds: settings.groupIds });
  const record = { action: 'user.created', orgId, actor: null, subjectId: id, origin } as const;
  await appendAudit(tx, services, {
    ...record,
    details: { by: 'oidc' },
    changes: changesBetween(null, { email, fullName }),
  });
  return id;
}

/** The account of whoever arrives: as linked before, by the proved address, or a new one. */
async function findAccount(tx: Tx, services: Services, arrival: Arrival): Promise<string | null> {
  const { identity } = arrival;
  const owner = await findOwner(tx, arrival);
  if (owner === 'taken') return null;
  if (owner?.isLinked) return owner.userId;
  const userId = owner?.userId ?? (await addNewcomer(tx, services, arrival));
  if (userId !== null) await linkIdentity(tx, services, { identity, userId });
  return userId;
}

/** What the sign-in page is told of somebody who arrives: a ticket and whose it is, or what is wrong. */
async function receive(services: Services, { settings, identity, signInId, origin }: Omit<Arrival, 'email' | 'orgId'>) {
  const email = identity.isEmailVerified ? normalizeEmail(identity.email ?? '') : null;
  if (email === null) return { error: 'email_not_verified' satisfies OidcProblem };
  return services.db.transaction(async (tx) => {
    const organization = await selectActiveOrganization(tx);
    const orgId = organization?.id ?? '';
    // Nobody gets an account by a method that is not in use.
    if (organization && !(await signsInBy(tx, orgId, 'oidc'))) return { error: 'not_configured' satisfies OidcProblem };
    const userId =
      organization && (await findAccount(tx, services, { identity, settings, email, orgId, signInId, origin }));
    if (!userId) return { error: 'no_account' satisfies OidcProblem };
    const person = await requirePerson(tx, orgId, userId);
    const ticket = await issueTicket(tx, services, { userId, signInId });
    return { oidc: ticket.expose(), email: person.email };
  });
}

/** Rules: AUTH-48, AUTH-49, AUTH-55, AUTH-56. */
export const completeOidc = endpoint({
  method: 'GET',
  path: '/userAccount/oidc/callback',
  tag: 'Sign-in',
  summary: 'Come back from the provider of single sign-on; the browser goes on to the sign-in page with a ticket',
  answerHeaders: { location: 'The sign-in page, with #oidc=<ticket>&email=… or #error=…' },
  policy: { who: 'anyone' },
  headers: z.object({ cookie: z.string().optional() }),
  query: z.looseObject({ error: z.string().optional() }),
  response: { 302: z.undefined() },
  async handle(services, { headers, query, origin }) {
    const { config, keys, oidc, limits, metrics, log } = services;
    await limits.count('signInStart', networkOf(origin.network));
    const client = await oidc.client();
    const kept = await keys.unseal(readFlowCookie(headers.cookie) ?? '');
    const flow = client && flowOf(kept, { settings: client.settings, state: query['state'] });
    const goOn = (outcome: Record<string, string>) =>
      new WithHeaders(undefined, backToSignIn(config, outcome, flow !== null));
    if (!client) return goOn({ error: 'not_configured' });
    if (query.error === 'access_denied') return goOn({ error: 'access_denied' });
    if (!flow) return goOn({ error: 'expired' });
    try {
      const identity = await client.finish(returnUrl(oidcRedirectUri(config), query), flow);
      const { signInId } = flow;
      return goOn(await receive(services, { settings: client.settings, identity, signInId, origin }));
    } catch (error) {
      if (!(error instanceof OidcError)) throw error;
      metrics.countUpstreamFault('oidcFailed');
      log.warn({ requestId: origin.requestId, cause: error.message }, 'single sign-on failed');
      return goOn({ error: 'failed' });
    }
  },
});
