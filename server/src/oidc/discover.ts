import * as openid from 'openid-client';
import { type Clock, second, systemClock } from '../base/clock.ts';
import { boundedFetch } from './bounded-fetch.ts';
import { isSameIssuer, otherIssuerText } from './issuers.ts';
import { OidcError, type OidcSettings } from './oidc.ts';
import { fieldsOf } from './oidc-error-text.ts';

/** Seconds by which the clocks of provider and server may differ. */
export const toleranceSeconds = 30;

/** What a client of a provider needs besides its settings. */
export interface OidcParts {
  readonly clock: Clock;
  /** Time limit for each request, to the last byte of the response. */
  readonly timeoutSeconds: number;
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

/** Returns what the library takes besides the issuer. */
function clientOf({ clientSecret, issuer, outboundNetworks }: OidcSettings, { clock, timeoutSeconds }: OidcParts) {
  // oxlint-disable-next-line typescript/no-deprecated -- configuration lets plain HTTP through on this machine only
  const overHttp = issuer.startsWith('http:') ? [openid.allowInsecureRequests] : [];
  return {
    metadata: {
      [openid.clockSkew]: Math.round((clock.now() - systemClock.now()) / second),
      [openid.clockTolerance]: toleranceSeconds,
    },
    auth: authentication(clientSecret.expose()),
    timeout: timeoutSeconds,
    // Without the checks the library skips the signature where TLS has authenticated the server.
    execute: [...overHttp, openid.enableNonRepudiationChecks],
    fetch: boundedFetch(outboundNetworks),
  };
}

/** Returns the issuer that a failed check of the library names; `null` for any other failure. */
function statedIssuer(error: unknown): string | null {
  if (!(error instanceof openid.ClientError) || error.code !== 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED') return null;
  const { issuer } = fieldsOf(fieldsOf(error.cause)['body']);
  return typeof issuer === 'string' ? issuer : null;
}

/**
 * Asks a provider for its description. The library takes several addresses of some providers for one issuer, among them
 * such that stand for many organizations: here the issuer is the configured one. Throws OidcError. Rule: FIT-6.
 */
export async function discover(settings: OidcSettings, parts: OidcParts): Promise<openid.Configuration> {
  const { issuer, clientId } = settings;
  const { metadata, auth, timeout, execute, fetch } = clientOf(settings, parts);
  const described = await openid
    .discovery(new URL(issuer), clientId, metadata, auth, { timeout, execute, [openid.customFetch]: fetch })
    .catch((error: unknown) => {
      const stated = statedIssuer(error);
      throw stated === null ? error : new OidcError(otherIssuerText(issuer, stated), { cause: error });
    });
  const { issuer: stated } = described.serverMetadata();
  if (!isSameIssuer(issuer, stated)) throw new OidcError(otherIssuerText(issuer, stated));
  return described;
}

/** Returns the client of a provider that is known already, with other settings. */
export function clientAt(
  server: openid.ServerMetadata,
  settings: OidcSettings,
  parts: OidcParts,
): openid.Configuration {
  const { metadata, auth, timeout, execute, fetch } = clientOf(settings, parts);
  const configuration = new openid.Configuration(server, settings.clientId, metadata, auth);
  configuration.timeout = timeout;
  configuration[openid.customFetch] = fetch;
  // oxlint-disable-next-line typescript/no-deprecated -- the same as when the provider was asked for its description
  for (const extension of execute) extension(configuration);
  return configuration;
}
