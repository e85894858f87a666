import * as openid from 'openid-client';
import { second } from '../base/clock.ts';
import { connectionText } from '../base/connection-error.ts';
import { ForbiddenAddressError, InsideError } from '../outbound/address-guard.ts';
import { OidcError } from './oidc.ts';
import { cleanProviderText } from './provider-text.ts';

/** The refusal of a provider, as OAuth spells it. */
export interface ProviderRefusal {
  /** The HTTP status; `null` where the browser brought the refusal. */
  readonly status: number | null;
  /** The error code, such as `invalid_client`; `null` where the provider states none. */
  readonly error: string | null;
  readonly description: string | null;
}

const textOrNull = (value: unknown) => (typeof value === 'string' && value !== '' ? value : null);

/** Returns the fields of what may be an object; none of anything else. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

async function bodyOf(response: Response): Promise<Readonly<Record<string, unknown>>> {
  try {
    return fieldsOf(await response.json());
  } catch {
    return {};
  }
}

/** Returns the refusal of a provider that an error of the library stands for; `null` for any other error. */
export async function refusalOf(error: unknown): Promise<ProviderRefusal | null> {
  if (error instanceof openid.ResponseBodyError) {
    return { status: error.status, error: error.error, description: error.error_description ?? null };
  }
  if (error instanceof openid.AuthorizationResponseError) {
    return { status: null, error: error.error, description: error.error_description ?? null };
  }
  if (!(error instanceof openid.WWWAuthenticateChallengeError)) return null;
  const parameters = error.cause[0]?.parameters ?? {};
  const body = await bodyOf(error.response);
  return {
    status: error.status,
    error: textOrNull(body['error']) ?? textOrNull(parameters.error),
    description: textOrNull(body['error_description']) ?? textOrNull(parameters.error_description),
  };
}

/** Returns a refusal in one sentence, such as `the provider answers 401 invalid_client: unknown client`. */
export function refusalText({ status, error, description }: ProviderRefusal): string {
  const words = ['the provider answers', status, error].filter((word) => word !== null).join(' ');
  return description === null ? words : `${words}: ${description}`;
}

/** Claims whose values may be shown; all of them say for whom a token is, or when. */
const shownClaims = new Set(['iss', 'aud', 'azp', 'exp', 'iat', 'nbf']);

/** Returns the values that a check of the ID token compared; `null` where there are none to show. */
function comparedValues(cause: unknown): string | null {
  const { claim, claims, expected, now } = fieldsOf(cause);
  if (typeof claim !== 'string' || !shownClaims.has(claim)) return null;
  const stated = fieldsOf(claims)[claim];
  if (typeof now === 'number' && typeof stated === 'number') {
    const [there, here] = [stated, now].map((seconds) => new Date(seconds * second).toISOString());
    return `it states ${there}, and the time here is ${here}: compare the clocks`;
  }
  const states = `it states ${JSON.stringify(stated)}`;
  return expected === undefined ? states : `${states}, expected is ${JSON.stringify(expected)}`;
}

/** Returns the message of the address guard, wherever the library has put it. */
function guardMessage(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const isOurs = error instanceof ForbiddenAddressError || error instanceof InsideError;
  return isOurs ? error.message : guardMessage(error.cause);
}

/** Returns what the causes of an error of the library add to its message. */
function detailsOf(cause: unknown): readonly string[] {
  if (cause instanceof Response) return [`status ${cause.status}`];
  if (!(cause instanceof Error)) return [];
  return [connectionText(cause), comparedValues(cause.cause)].filter((text) => text !== null);
}

/**
 * Returns the problem on one line: which check failed, with the provider's own text, and never a secret. Rule: FIT-4.
 * @param secrets values of the exchange that a provider might repeat
 */
export async function oidcErrorText(error: unknown, secrets: readonly string[]): Promise<string> {
  if (!(error instanceof Error)) return 'unknown';
  const guarded = guardMessage(error);
  if (guarded !== null) return guarded;
  const refusal = await refusalOf(error);
  if (refusal) return cleanProviderText(refusalText(refusal), secrets);
  if (error instanceof OidcError) return cleanProviderText(error.message, secrets);
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  const details = detailsOf(cause);
  const message = details.length === 0 ? error.message : `${error.message} (${details.join('; ')})`;
  return cleanProviderText([textOrNull(code), message].filter((part) => part !== null).join(': '), secrets);
}
