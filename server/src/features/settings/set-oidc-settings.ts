import { z } from 'zod';
import type { SessionPrincipal } from '../../access/principal.ts';
import type { ForCaller } from '../../access/reauthorization.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { refuseInput } from '../../base/errors.ts';
import type { Origin } from '../../base/origin.ts';
import { Secret } from '../../base/secret.ts';
import { mailDomain, oidcIssuer } from '../../config/config.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { emailTrustProblem } from '../../oidc/issuers.ts';
import { emailTrusts, type OidcSettings } from '../../oidc/oidc.ts';
import { requireOutbound } from '../../outbound/require-outbound.ts';
import type { Services } from '../../services.ts';
import { requireGroups } from '../groups/public.ts';
import { auditedOidcSettings } from './audited-settings.ts';
import { decryptOidcSettings, describeOidcSettings, encryptOidcSettings, oidcSettingsResponse } from './public.ts';
import { changedAt, keepProvider, requireGoodSecret, storeSetting } from './setting-actions.ts';
import { selectSetting } from './setting-store.ts';

const listMax = 100;

const body = z.strictObject({
  issuer: oidcIssuer
    .describe('The issuer, exactly as the provider states it')
    .meta({ examples: ['https://id.example.com'] }),
  clientId: z
    .string()
    .min(1)
    .max(500)
    .meta({ examples: ['latchkey'] }),
  clientSecret: z
    .string()
    .min(1)
    .max(2_000)
    .optional()
    .describe('May be left out to keep the stored one, as long as issuer and clientId stay the same')
    .meta({ examples: ['c2VjcmV0LW9mLXRoZS1jbGllbnQ'] }),
  allowedDomains: z
    .array(mailDomain)
    .max(listMax)
    .default([])
    .describe('Domains whose users get an account at their first sign-in; all others must have one')
    .meta({ examples: [['example.com']] }),
  groupIds: z
    .array(id)
    .max(listMax)
    .default([])
    .describe('Groups that these new users are added to')
    .meta({ examples: [[]] }),
  emailTrust: z
    .enum(emailTrusts)
    .default('claim')
    .describe('claim: addresses that email_verified says so of count as verified; issuer: all of this issuer do')
    .meta({ examples: ['claim'] }),
});
type Body = z.output<typeof body>;

/** Returns the secret to store: the given one, or the stored one where provider and client are the same. */
function secretFor({ clientSecret, issuer, clientId }: Body, stored: OidcSettings | null): Secret {
  if (clientSecret !== undefined) return new Secret(clientSecret);
  if (stored?.issuer === issuer && stored.clientId === clientId) return stored.clientSecret;
  throw refuseInput({ field: 'body.clientSecret', message: 'is required with this issuer and clientId' });
}

interface Input extends ForCaller<SessionPrincipal> {
  readonly body: Body;
  readonly origin: Origin;
}

async function set(services: Services, input: Input): Promise<z.output<typeof oidcSettingsResponse>> {
  const { caller, write, body: wanted, origin } = input;
  const problem = emailTrustProblem(wanted);
  if (problem !== null) throw refuseInput({ field: 'body.emailTrust', message: problem });
  requireOutbound('body.issuer', new URL(wanted.issuer), services.config.outboundNetworks);
  const { db, encryption, clock } = services;
  const { orgId, userId } = caller;
  const earlier = await selectSetting(db.read, 'oidc');
  const stored = earlier === null ? null : await decryptOidcSettings(encryption, earlier);
  const complete = { ...wanted, clientSecret: secretFor(wanted, stored) };
  const settings = { ...complete, changedAtMs: changedAt(complete, stored, clock.now()) };
  const replacement = { stored, wanted: settings, orgId };
  await requireGoodSecret(services, replacement);
  const content = await encryptOidcSettings(encryption, settings);
  const isDone = await write(async (tx) => {
    await keepProvider(tx, services, replacement);
    await requireGroups(tx, { orgId, groupIds: settings.groupIds, caller });
    const isSecretKept = wanted.clientSecret === undefined;
    const setting = { name: 'oidc', content, by: userId, nowMs: clock.now() } as const;
    if (!(await storeSetting(tx, { ...setting, earlier, isSecretKept }))) return false;
    const changes = changesBetween(auditedOidcSettings(stored), auditedOidcSettings(settings));
    const record = { action: 'settings.oidc-set', orgId, actor: caller, subjectId: null, origin } as const;
    await appendAudit(tx, services, { ...record, changes });
    return true;
  });
  return isDone ? describeOidcSettings(services) : set(services, input);
}

/**
 * Rules: AUDIT-4, AUDIT-6, AUTH-48, AUTH-58, CONFIG-40, FIT-2, FIT-10, SCOPE-27. Takes a session: control over the provider gives
 * access to all accounts, which no scope of a token grants.
 */
export const setOidcSettings = endpoint({
  method: 'PUT',
  path: '/settings/oidc',
  tag: 'Settings',
  summary:
    'Set the provider of single sign-on; takes effect at once. OIDC_ISSUER of the configuration takes precedence',
  policy: { who: 'admin', sessionOnly: true },
  body,
  response: { 200: oidcSettingsResponse },
  handle: set,
});
