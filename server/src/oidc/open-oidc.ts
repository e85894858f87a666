import * as openid from 'openid-client';
import { type Clock, hour, second } from '../base/clock.ts';
import { ForbiddenAddressError } from '../outbound/address-guard.ts';
import { checkClientSecret } from './client-secret.ts';
import { discover, type OidcParts, toleranceSeconds } from './discover.ts';
import { identityOf, tellsAddress } from './identity-claims.ts';
import { type OidcClient, OidcError, type OidcFlow, type OidcIdentity, type OidcSettings } from './oidc.ts';
import { oidcErrorText } from './oidc-error-text.ts';

const usualTimeoutSeconds = 10;
/** Keys and addresses of a provider change seldom; a provider that cannot be reached is asked again at once. */
const knownMs = hour;
const scope = 'openid email profile';

const places = ['token_endpoint', 'jwks_uri', 'userinfo_endpoint'] as const;

/** Throws OidcError where the description of a provider names a place that the outbound guard will refuse. */
async function requirePlaces(configuration: openid.Configuration, networks: readonly string[]): Promise<void> {
  const { isRefusedAddress } = await import('../outbound/refused-address.ts');
  const metadata = configuration.serverMetadata();
  for (const place of places) {
    const url = metadata[place];
    if (url === undefined || !(await isRefusedAddress(url, networks))) continue;
    throw new OidcError(`its description is there, but of its ${place} ${new ForbiddenAddressError().message}`);
  }
}

/** The description of a provider, kept for an hour; one that could not be had is asked for again at once. */
function cachedConfiguration(settings: OidcSettings, parts: OidcParts): () => Promise<openid.Configuration> {
  let known: { readonly sinceMs: number; readonly configuration: Promise<openid.Configuration> } | null = null;
  return async () => {
    const nowMs = parts.clock.now();
    if (known && nowMs - known.sinceMs <= knownMs && nowMs >= known.sinceMs) return known.configuration;
    const mine = { sinceMs: nowMs, configuration: discover(settings, parts) };
    known = mine;
    mine.configuration.catch(() => {
      if (known === mine) known = null;
    });
    return mine.configuration;
  };
}

async function beginAt(configuration: openid.Configuration, redirectUri: string) {
  const flow = {
    state: openid.randomState(),
    nonce: openid.randomNonce(),
    verifier: openid.randomPKCECodeVerifier(),
  };
  const url = openid.buildAuthorizationUrl(configuration, {
    redirect_uri: redirectUri,
    scope,
    state: flow.state,
    nonce: flow.nonce,
    code_challenge: await openid.calculatePKCECodeChallenge(flow.verifier),
    code_challenge_method: 'S256',
  });
  return { url: url.href, flow };
}

interface Arrival {
  readonly url: URL;
  readonly flow: OidcFlow;
  readonly nowMs: number;
  readonly settings: OidcSettings;
  /** Collects values that no error text may repeat. */
  readonly secrets: string[];
}

async function finishAt(configuration: openid.Configuration, arrival: Arrival): Promise<OidcIdentity> {
  const { url, flow, nowMs, secrets } = arrival;
  const { emailTrust } = arrival.settings;
  const tokens = await openid.authorizationCodeGrant(configuration, url, {
    expectedState: flow.state,
    expectedNonce: flow.nonce,
    pkceCodeVerifier: flow.verifier,
    idTokenExpected: true,
  });
  secrets.push(tokens.access_token, tokens.id_token ?? '', tokens.refresh_token ?? '');
  const claims = tokens.claims();
  if (!claims) throw new OidcError('no ID token');
  // The library looks at it only where the token has several audiences (OpenID Connect Core, section 3.1.3.7).
  const { azp } = claims;
  const { client_id: clientId } = configuration.clientMetadata();
  if (azp !== undefined && azp !== clientId) throw new OidcError('the ID token is for another client ("azp")');
  if (claims.iat > nowMs / second + toleranceSeconds) throw new OidcError('the ID token was issued in the future');
  // Many providers tell the address at their own place only (OpenID Connect Core, section 5.4).
  const { userinfo_endpoint: userinfo } = configuration.serverMetadata();
  const isTold = userinfo === undefined || tellsAddress(claims, emailTrust);
  const addressClaims = isTold ? claims : await openid.fetchUserInfo(configuration, tokens.access_token, claims.sub);
  return identityOf(claims, addressClaims, emailTrust);
}

/**
 * Opens the client of a provider; its metadata are fetched when they are first needed. Code flow with PKCE, state and
 * nonce; ten seconds for each request, by default. Rule: AUTH-48.
 */
export function openOidc(
  settings: OidcSettings,
  { clock, timeoutSeconds = usualTimeoutSeconds }: { readonly clock: Clock; readonly timeoutSeconds?: number },
): OidcClient {
  const parts = { clock, timeoutSeconds };
  const configuration = cachedConfiguration(settings, parts);

  async function attempt<T>(work: (secrets: string[]) => Promise<T>): Promise<T> {
    const secrets = [settings.clientSecret.expose()];
    try {
      return await work(secrets);
    } catch (error) {
      throw new OidcError(await oidcErrorText(error, secrets), { cause: error });
    }
  }

  /** Cached metadata say nothing about today. */
  async function describe(): Promise<openid.Configuration> {
    const described = await discover(settings, parts);
    if (settings.outboundNetworks) await requirePlaces(described, settings.outboundNetworks);
    return described;
  }

  return {
    settings,
    check: () => attempt(async () => void (await describe())),
    checkSecret: (redirectUri) =>
      attempt(async (secrets) => {
        const described = await describe();
        return checkClientSecret(described.serverMetadata(), { settings, parts, redirectUri, secrets });
      }),
    begin: (redirectUri) => attempt(async () => beginAt(await configuration(), redirectUri)),
    finish: (url, flow) =>
      attempt(async (secrets) => {
        secrets.push(url.searchParams.get('code') ?? '', flow.verifier, flow.nonce, flow.state);
        return finishAt(await configuration(), { url, flow, nowMs: clock.now(), settings, secrets });
      }),
  };
}
