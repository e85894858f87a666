import type { Secret } from '../base/secret.ts';

/** A provider of OpenID Connect, and what its people may do here. */
export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: Secret;
  /** Domains whose people get an account at their first sign-in; all others must have one. */
  readonly allowedDomains: readonly string[];
  /** Groups that these new people are put into. */
  readonly groupIds: readonly string[];
  /** What an administrator stored leads to public addresses and these only; without it the operator chose the provider. */
  readonly outboundNetworks?: readonly string[];
}

/** The address below that of the service where the provider's people come back; it is registered with the provider. */
const callbackPath = '/api/v1/userAccount/oidc/callback';

/** Where the provider sends people back to. Rule: AUTH-48. */
export function oidcRedirectUri({ baseUrl }: { readonly baseUrl: string }): string {
  return baseUrl + callbackPath;
}

/**
 * Where people begin with methods that lead elsewhere, by the method. Rules: AUTH-48, AUTH-56.
 * @param signInId of the sign-in that they begin for: what they come back with is good for no other
 */
export function authProviders(
  { baseUrl }: { readonly baseUrl: string },
  methods: readonly string[],
  signInId: string,
): Readonly<Record<string, unknown>> {
  const startUrl = `${baseUrl}/api/v1/userAccount/oidc/start?signIn=${signInId}`;
  return methods.includes('oidc') ? { oidc: { startUrl } } : {};
}

/** What has to be remembered between going to the provider and coming back. */
export interface OidcFlow {
  readonly state: string;
  readonly nonce: string;
  /** PKCE (RFC 7636). */
  readonly verifier: string;
}

/** Who the provider says somebody is. */
export interface OidcIdentity {
  readonly issuer: string;
  readonly subject: string;
  readonly email: string | null;
  readonly isEmailVerified: boolean;
  readonly name: string | null;
}

/** What went wrong with a provider, in our own words: for the log and for administrators. */
export class OidcError extends Error {
  override readonly name = 'OidcError';
}

/** The client of a provider. */
export interface OidcClient {
  readonly settings: OidcSettings;
  /** Where to send somebody, and what to remember. Throws OidcError. */
  begin(redirectUri: string): Promise<{ readonly url: string; readonly flow: OidcFlow }>;
  /**
   * Who came back.
   * @param url the whole address that the provider sent the browser to; throws OidcError for whatever does not fit
   */
  finish(url: URL, flow: OidcFlow): Promise<OidcIdentity>;
  /** Asks the provider for its own description. Throws OidcError. */
  check(): Promise<void>;
}
