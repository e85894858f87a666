import * as openid from 'openid-client';
import { type Clock, hour, second, systemClock } from '../base/clock.ts';
import { connectionText } from '../base/connection-error.ts';
import { ForbiddenAddressError, InsideError } from '../outbound/address-guard.ts';
import { boundedFetch } from './bounded-fetch.ts';
import { type OidcClient, OidcError, type OidcFlow, type OidcIdentity, type OidcSettings } from './oidc.ts';

const usualTimeoutSeconds = 10;
const toleranceSeconds = 30;
/** Keys and addresses of a provider change seldom; a provider that cannot be reached is asked again at once. */
const knownMs = hour;
const scope = 'openid email profile';
const messageCharsMax = 300;

interface OidcParts {
  readonly clock: Clock;
  /** Time limit for each request, to the last byte of the response. */
  readonly timeoutSeconds: number;
}

/** Returns the message of the address guard, wherever the library has put it. */
function guardMessage(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const isOurs = error instanceof ForbiddenAddressError || error instanceof InsideError;
  return isOurs ? error.message : guardMessage(error.cause);
}

/**
 * Returns the provider's own words where it answered with a challenge of HTTP authentication, for which the library has a
 * code alone; `null` for any other error.
 */
function challengeText(error: Error): string | null {
  if (!(error instanceof openid.WWWAuthenticateChallengeError)) return null;
  const { status, cause } = error;
  const parameters = cause[0]?.parameters;
  const said = [parameters?.['error'], parameters?.['error_description']]
    .filter((part) => part !== undefined)
    .join(': ');
  return `the provider answered ${status}${said === '' ? '' : ` (${said})`}: it may not accept the client id and secret`;
}

/** Returns the problem on one line and without secrets: codes and names, never exchanged values. */
function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const message = guardMessage(error);
  if (message !== null) return message;
  const { code, error: word, cause } = error as { code?: unknown; error?: unknown; cause?: unknown };
  const inner = cause instanceof Error ? ` (${connectionText(cause)})` : '';
  const text =
    challengeText(error) ??
    [code, word, `${error.message}${inner}`].filter((part) => typeof part === 'string').join(': ');
  return text.replace(/\s+/g, ' ').slice(0, messageCharsMax);
}

/**
 * Returns the identity.
 * @param addressClaims source of the address: the ID token, or the userinfo endpoint. An address and whether it is
 * verified belong together.
 */
function identityOf(
  { iss, sub, ...claims }: openid.IDToken,
  addressClaims: Readonly<Record<string, unknown>>,
): OidcIdentity {
  const { email, email_verified: isVerified, name = claims['name'] } = addressClaims;
  return {
    issuer: iss,
    subject: sub,
    email: typeof email === 'string' ? email : null,
    isEmailVerified: isVerified === true,
    name: typeof name === 'string' ? name : null,
  };
}

/** Proves who we are in the way that the provider takes; HTTP Basic where it takes that, or does not say. */
function authentication(clientSecret: string): openid.ClientAuth {
  const [basic, post] = [openid.ClientSecretBasic(clientSecret), openid.ClientSecretPost(clientSecret)];
  return (...request) => {
    const [server] = request;
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const isPost = methods.includes('client_secret_post') && !methods.includes('client_secret_basic');
    (isPost ? post : basic)(...request);
  };
}

/** Asks a provider for its description. */
function discover(
  { issuer, clientId, clientSecret, outboundNetworks }: OidcSettings,
  { clock, timeoutSeconds }: OidcParts,
): Promise<openid.Configuration> {
  const metadata = {
    [openid.clockSkew]: Math.round((clock.now() - systemClock.now()) / second),
    [openid.clockTolerance]: toleranceSeconds,
  };
  const url = new URL(issuer);
  // oxlint-disable-next-line typescript/no-deprecated -- configuration lets plain HTTP through on this machine only
  const overHttp = url.protocol === 'http:' ? [openid.allowInsecureRequests] : [];
  return openid.discovery(url, clientId, metadata, authentication(clientSecret.expose()), {
    timeout: timeoutSeconds,
    // Without the checks the library skips the signature where TLS has authenticated the server.
    execute: [...overHttp, openid.enableNonRepudiationChecks],
    [openid.customFetch]: boundedFetch(outboundNetworks),
  });
}

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
}

async function finishAt(configuration: openid.Configuration, { url, flow, nowMs }: Arrival): Promise<OidcIdentity> {
  const tokens = await openid.authorizationCodeGrant(configuration, url, {
    expectedState: flow.state,
    expectedNonce: flow.nonce,
    pkceCodeVerifier: flow.verifier,
    idTokenExpected: true,
  });
  const claims = tokens.claims();
  if (!claims) throw new OidcError('no ID token');
  // The library looks at it only where the token has several audiences (OpenID Connect Core, section 3.1.3.7).
  const { azp } = claims;
  const { client_id: clientId } = configuration.clientMetadata();
  if (azp !== undefined && azp !== clientId) throw new OidcError('the ID token is for another client ("azp")');
  if (claims.iat > nowMs / second + toleranceSeconds) throw new OidcError('the ID token was issued in the future');
  // Many providers tell the address at their own place only (OpenID Connect Core, section 5.4).
  const isTold =
    claims['email_verified'] !== undefined || configuration.serverMetadata().userinfo_endpoint === undefined;
  return identityOf(
    claims,
    isTold ? claims : await openid.fetchUserInfo(configuration, tokens.access_token, claims.sub),
  );
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

  async function attempt<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw new OidcError(problemOf(error), { cause: error });
    }
  }

  return {
    settings,
    check: () =>
      attempt(async () => {
        // Cached metadata say nothing about today.
        const described = await discover(settings, parts);
        if (settings.outboundNetworks) await requirePlaces(described, settings.outboundNetworks);
      }),
    begin: (redirectUri) => attempt(async () => beginAt(await configuration(), redirectUri)),
    finish: (url, flow) => attempt(async () => finishAt(await configuration(), { url, flow, nowMs: clock.now() })),
  };
}
