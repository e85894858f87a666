import { ApiError } from '../base/errors.ts';

const credentialBytesMax = 8_192;
/** RFC 6750, section 2.1: the scheme in any case, spaces, then the token. */
const bearerForm = /^bearer +([^\s]+)$/i;

function challenge(
  apiError: 'credentialMissing' | 'tokenInvalid' | 'tokenExpired' | 'tokenRevoked' | 'sessionExpired',
) {
  const error = apiError === 'credentialMissing' ? '' : ', error="invalid_token"';
  return new ApiError(apiError, { headers: { 'www-authenticate': `Bearer realm="latchkey"${error}` } });
}

/** Each 401 for a bearer credential, with its challenge of RFC 6750, section 3: the only place that makes one. */
export const unauthorized = {
  missing: () => challenge('credentialMissing'),
  invalid: () => challenge('tokenInvalid'),
  expired: () => challenge('tokenExpired'),
  revoked: () => challenge('tokenRevoked'),
  sessionExpired: () => challenge('sessionExpired'),
} as const;

/**
 * The credential in an Authorization header, without its display prefix. Throws the 401 for a header that is absent or
 * not of the bearer form. Rules: AUTH-19, PAT-25, PAT-26.
 * @param displayPrefixes what may stand before a personal access token, underscore included; one is taken off, once
 */
export function readBearer(header: string | undefined, displayPrefixes: readonly string[]): string {
  const shown = header === undefined ? undefined : bearerForm.exec(header)?.[1];
  if (shown === undefined) throw unauthorized.missing();
  if (shown.length > credentialBytesMax) throw unauthorized.invalid();
  // One may begin with another, as lk_ and lk_old_ do: the longest is the one that was displayed.
  const isLonger = (one: string, other: string) => one.length > other.length && shown.startsWith(one);
  const prefix = displayPrefixes.reduce((longest, one) => (isLonger(one, longest) ? one : longest), '');
  return shown.slice(prefix.length);
}
