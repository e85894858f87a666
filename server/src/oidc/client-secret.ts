import { randomBytes } from 'node:crypto';
import * as openid from 'openid-client';
import { Secret } from '../base/secret.ts';
import { clientAt, type OidcParts } from './discover.ts';
import { OidcError, type OidcSettings, type SecretCheck } from './oidc.ts';
import { type ProviderRefusal, refusalOf, refusalText } from './oidc-error-text.ts';
import { cleanProviderText } from './provider-text.ts';

const refusedStatus = 401;
/** Keycloak answers `unauthorized_client` for a wrong secret, Auth0 `access_denied`, both with 401. */
const refusedErrors = new Set(['invalid_client', 'unauthorized_client']);
/** A provider that is overloaded or broken says nothing about the secret. */
const isUndecided = ({ status }: ProviderRefusal) => status === null || status === 429 || status >= 500;

const isRefused = ({ status, error }: ProviderRefusal) => status === refusedStatus || refusedErrors.has(error ?? '');

/** The outcome of one request for a token; `null`: the provider issued one. */
type TokenOutcome = ProviderRefusal | null;

/** Asks for a token and drops it. Throws what the library throws where the provider does not answer as it should. */
async function ask(
  client: openid.Configuration,
  grantType: string,
  parameters: Record<string, string>,
): Promise<TokenOutcome> {
  try {
    await openid.genericGrantRequest(client, grantType, parameters);
    return null;
  } catch (error) {
    const refusal = await refusalOf(error);
    if (refusal) return refusal;
    throw error;
  }
}

interface Check {
  readonly settings: OidcSettings;
  readonly parts: OidcParts;
  readonly redirectUri: string;
  /** Collects values that no error text may repeat. */
  readonly secrets: string[];
}

/** A request for a token, with the secret and with a made-up one. */
interface Comparison {
  readonly ours: TokenOutcome;
  readonly isWrongRefused: boolean;
}

/** Makes a request for a token; unless it is refused, once more with a made-up secret. Throws OidcError. */
async function compare(
  [right, wrong]: readonly [openid.Configuration, openid.Configuration],
  grantType: string,
  parameters: Record<string, string>,
): Promise<Comparison> {
  const ours = await ask(right, grantType, parameters);
  if (ours && isUndecided(ours)) throw new OidcError(refusalText(ours));
  if (ours && isRefused(ours)) return { ours, isWrongRefused: true };
  const other = await ask(wrong, grantType, parameters);
  return { ours, isWrongRefused: other !== null && isRefused(other) };
}

function refuse(outcome: ProviderRefusal): never {
  throw new OidcError(`it refuses the client id or secret: ${refusalText(outcome)}`);
}

/**
 * Proves the secret with a token for the client itself, where the provider looks at a code before the secret: Entra ID
 * takes its own scope only. A client may be registered for codes alone, and then nothing is proved. Throws OidcError
 * where the secret is refused.
 */
async function provesByItself(clients: readonly [openid.Configuration, openid.Configuration], { settings }: Check) {
  const isEntra = new URL(settings.issuer).hostname.startsWith('login.microsoftonline.');
  const scope = isEntra ? { scope: `${settings.clientId}/.default` } : undefined;
  const compared = await compare(clients, 'client_credentials', scope ?? {}).catch(() => null);
  if (compared?.ours?.error === 'invalid_client') refuse(compared.ours);
  return compared !== null && !(compared.ours && isRefused(compared.ours)) && compared.isWrongRefused;
}

/**
 * Asks for tokens with a made-up code, which no provider exchanges. A provider that looks at the secret first answers
 * `invalid_client` to a wrong one and something else to the right one. So a request that is not refused is made again
 * with a made-up secret: where both get the same answer, the secret is not proved. Throws OidcError where the provider
 * refuses the secret. Rule: FIT-3.
 */
export async function checkClientSecret(server: openid.ServerMetadata, check: Check): Promise<SecretCheck> {
  const { settings, parts, redirectUri, secrets } = check;
  const [code, madeUp] = [randomBytes(24).toString('base64url'), randomBytes(24).toString('base64url')];
  secrets.push(code, madeUp);
  const wrong = { ...settings, clientSecret: new Secret(madeUp) };
  const clients = [clientAt(server, settings, parts), clientAt(server, wrong, parts)] as const;
  const exchange = { code, redirect_uri: redirectUri, code_verifier: openid.randomPKCECodeVerifier() };
  const { ours, isWrongRefused } = await compare(clients, 'authorization_code', exchange);
  if (ours && isRefused(ours)) refuse(ours);
  if (isWrongRefused || (await provesByItself(clients, check))) return { unprovedBecause: null };
  const said = ours ? refusalText(ours) : 'it issues tokens for a made-up code';
  return { unprovedBecause: `a made-up secret gets the same answer: ${cleanProviderText(said, secrets)}` };
}
