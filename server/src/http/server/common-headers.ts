import type { Config } from '../../config/config.ts';
import { crossOriginHeaders } from './cors.ts';

/** A year, for this host alone: other hosts of the domain are not ours to decide. */
const httpsOnly = 'max-age=31536000';

/**
 * Returns the headers of every response, those included that no route gives.
 * @param origin the Origin header of the request; `undefined`: it has none, or is not known
 */
export function commonHeaders(
  { baseUrl, corsOrigins }: Pick<Config, 'baseUrl' | 'corsOrigins'>,
  { requestId, origin }: { readonly requestId: string; readonly origin: string | undefined },
): Record<string, string> {
  return {
    'x-request-id': requestId,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(baseUrl.startsWith('https:') ? { 'strict-transport-security': httpsOnly } : {}),
    ...crossOriginHeaders(origin, corsOrigins),
  };
}
