import type { OidcSettings } from './oidc.ts';

const microsoftHosts = new Set([
  'login.microsoftonline.com',
  'login.microsoftonline.us',
  'login.partner.microsoftonline.cn',
  'login.windows.net',
  'sts.windows.net',
]);
/** Addresses at Microsoft that stand for many organizations. */
const sharedPaths = /^\/(common|organizations|consumers)(\/|$)/i;

/** Returns whether an issuer stands for many organizations, each with administrators of its own. Rule: FIT-6. */
export function isSharedIssuer(issuer: string): boolean {
  if (!URL.canParse(issuer)) return false;
  const { hostname, pathname } = new URL(issuer);
  return microsoftHosts.has(hostname) && sharedPaths.test(pathname);
}

/** Providers where anyone can open an account: there, `email_verified` alone says who has proved an address. */
const publicHosts = new Set([
  'accounts.google.com',
  'appleid.apple.com',
  'account.apple.com',
  'gitlab.com',
  'www.facebook.com',
  'www.linkedin.com',
  'login.yahoo.com',
  'api.login.yahoo.com',
  'id.twitch.tv',
  'login.live.com',
  'securetoken.google.com',
  'discord.com',
  'login.salesforce.com',
  'oauth.telegram.org',
]);
/** The tenant of personal Microsoft accounts. */
const personalTenant = '/9188040d-6c67-4c5b-b112-36a304b66dad';

/** Returns whether anyone can open an account at an issuer. */
function isPublicIssuer(issuer: string): boolean {
  const { hostname, pathname } = new URL(issuer);
  return (
    publicHosts.has(hostname) || (microsoftHosts.has(hostname) && pathname.toLowerCase().startsWith(personalTenant))
  );
}

/** Returns why all addresses of an issuer may not count as verified; `null` where they may, or do not. Rule: FIT-2. */
export function emailTrustProblem({ issuer, emailTrust }: Pick<OidcSettings, 'issuer' | 'emailTrust'>): string | null {
  if (emailTrust === 'claim' || !isPublicIssuer(issuer)) return null;
  return 'must be claim for this issuer: anyone can open an account there';
}

/** The tenants of Azure AD B2C state an issuer without the name of the policy, which is in the configured one. */
function areB2cOfOneTenant(one: URL, other: URL): boolean {
  return one.hostname.endsWith('.b2clogin.com') && one.host === other.host;
}

const withoutSlash = (address: string) => address.replace(/\/$/, '');

/**
 * Returns whether the issuer that a provider states is the configured one. A slash at the end matters, except after the
 * bare host; it never does where `ignoresSlash`.
 */
export function isSameIssuer(configured: string, stated: string, { ignoresSlash = false } = {}): boolean {
  if (!URL.canParse(stated)) return false;
  const [one, other] = [new URL(configured), new URL(stated)];
  if (areB2cOfOneTenant(one, other)) return true;
  return ignoresSlash ? withoutSlash(one.href) === withoutSlash(other.href) : one.href === other.href;
}

/** Returns what is wrong where a provider states another issuer than the configured one. Rules: AUTH-58, FIT-6. */
export function otherIssuerText(configured: string, stated: string): string {
  if (stated.includes('{')) {
    return `it stands for many organizations (${stated}): set the issuer of your own tenant, with its id`;
  }
  return `it states the issuer ${stated}, and ${configured} is configured: set the stated one, exactly`;
}
