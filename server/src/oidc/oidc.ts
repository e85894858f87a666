import type { Secret } from '../base/secret.ts';

/** Which addresses of a provider count as verified: those whose claim says so, or all of the issuer. Rule: FIT-1. */
export const emailTrusts = ['claim', 'issuer'] as const;

/** Which addresses of a provider count as verified. */
export type EmailTrust = (typeof emailTrusts)[number];

/** A provider of OpenID Connect, and the rights of its users here. */
export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: Secret;
  /** Domains whose users get an account at their first sign-in; all others must have one. */
  readonly allowedDomains: readonly string[];
  /** Groups that these new users are added to. */
  readonly groupIds: readonly string[];
  readonly emailTrust: EmailTrust;
  /**
   * When an administrator last changed issuer, client, secret or emailTrust, in milliseconds since 1970: sign-ins before
   * prove nothing about them. `null`: unknown, as of settings from the configuration.
   */
  readonly changedAtMs: number | null;
  /**
   * Present for settings of an administrator, which may lead to public addresses and these only; absent where the
   * operator chose the provider.
   */
  readonly outboundNetworks?: readonly string[];
}

/** Path below the service's address where the provider sends users back to; registered with the provider. */
const callbackPath = '/api/v1/userAccount/oidc/callback';

/** Returns the address that the provider sends users back to. Rule: AUTH-48. */
export function oidcRedirectUri({ baseUrl }: { readonly baseUrl: string }): string {
  return baseUrl + callbackPath;
}

/**
 * Returns the addresses where users begin with methods of other systems, by method. Rules: AUTH-48, AUTH-56.
 * @param signInId of the sign-in that they begin for: the result is valid for no other
 */
export function authProviders(
  { baseUrl }: { readonly baseUrl: string },
  methods: readonly string[],
  signInId: string,
): Readonly<Record<string, unknown>> {
  const startUrl = `${baseUrl}/api/v1/userAccount/oidc/start?signIn=${signInId}`;
  return methods.includes('oidc') ? { oidc: { startUrl } } : {};
}

/** State that has to be kept between the redirect to the provider and the return. */
export interface OidcFlow {
  readonly state: string;
  readonly nonce: string;
  /** PKCE (RFC 7636). */
  readonly verifier: string;
}

/** Identity of a user according to the provider. */
export interface OidcIdentity {
  readonly issuer: string;
  readonly subject: string;
  readonly email: string | null;
  /** Why the address counts as not verified, for the log; `null`: it counts as verified. */
  readonly addressProblem: string | null;
  readonly name: string | null;
}

/** Failure of a provider, in our own words: for the log and for administrators. */
export class OidcError extends Error {
  override readonly name = 'OidcError';
}

/** Outcome of a check of the client secret that was not refused. Rule: FIT-3. */
export interface SecretCheck {
  /** `null`: the provider accepts the secret, and refuses a wrong one. Otherwise why that could not be proved. */
  readonly unprovedBecause: string | null;
}

/** The client of a provider. */
export interface OidcClient {
  readonly settings: OidcSettings;
  /** Returns the address to send a user to, and the state to keep. Throws OidcError. */
  begin(redirectUri: string): Promise<{ readonly url: string; readonly flow: OidcFlow }>;
  /**
   * Returns the identity of the user who came back.
   * @param url the whole address that the provider sent the browser to; throws OidcError for one that does not match
   */
  finish(url: URL, flow: OidcFlow): Promise<OidcIdentity>;
  /** Asks the provider for its own description. Throws OidcError. */
  check(): Promise<void>;
  /**
   * Returns whether the provider accepts the client secret. Throws OidcError where it refuses it, or does not answer as
   * it should.
   */
  checkSecret(redirectUri: string): Promise<SecretCheck>;
}
