import type { EmailTrust, OidcIdentity } from './oidc.ts';

type Claims = Readonly<Record<string, unknown>>;

/** Claims that look like an address and are none: a user may choose them, and no mail need arrive there. */
const otherNames = ['preferred_username', 'upn', 'unique_name', 'emails', 'mail'];

/** Some providers, such as Apple and Amazon Cognito, write the truth value as text. */
const isTrue = (value: unknown) => value === true || value === 'true';

/** Returns why the address of a user counts as not verified; `null` where it counts as verified. Rules: FIT-1, FIT-5. */
function addressProblem({ email, ...claims }: Claims, emailTrust: EmailTrust): string | null {
  if (email !== undefined && typeof email !== 'string') return 'the claim "email" is no text';
  if (email === undefined || email === '') {
    const others = otherNames.filter((name) => claims[name] !== undefined).map((name) => `"${name}"`);
    const hint = others.length === 0 ? '' : `, and ${others.join(', ')} is no address that it vouches for`;
    return `the provider states no "email"${hint}: let it send one`;
  }
  const verified = claims['email_verified'];
  if (emailTrust === 'issuer' || isTrue(verified)) return null;
  const stated = verified === undefined ? 'missing' : 'not true';
  return `"email_verified" is ${stated}, and emailTrust is "claim"`;
}

/** Returns whether claims say everything about the address that is needed. */
export function tellsAddress(claims: Claims, emailTrust: EmailTrust): boolean {
  const isTrusted = emailTrust === 'issuer' && typeof claims['email'] === 'string';
  return isTrusted || claims['email_verified'] !== undefined;
}

/**
 * Returns the identity of a user.
 * @param who claims of the ID token
 * @param addressClaims source of the address: the ID token, or the userinfo endpoint. An address and whether it is
 * verified belong together.
 */
export function identityOf(
  who: Claims & { readonly iss: string; readonly sub: string },
  addressClaims: Claims,
  emailTrust: EmailTrust,
): OidcIdentity {
  const { email, name = who['name'] } = addressClaims;
  return {
    issuer: who.iss,
    subject: who.sub,
    email: typeof email === 'string' ? email : null,
    addressProblem: addressProblem(addressClaims, emailTrust),
    name: typeof name === 'string' ? name : null,
  };
}
