import type { CustomFetchOptions } from 'openid-client';
import { OidcError } from './oidc.ts';

const bytesMax = 1_048_576;

/** Sends a request of the library, under the guard where `networks` are given. */
async function send(
  url: string,
  { body, headers, method, redirect, signal }: CustomFetchOptions,
  networks: readonly string[] | undefined,
): Promise<Response> {
  const request = { headers, method, redirect, ...(signal ? { signal } : {}) };
  if (networks === undefined) return fetch(url, body === undefined ? request : { ...request, body });
  const { guardedFetch } = await import('../outbound/guarded-fetch.ts');
  const text = body === undefined || body === null ? null : await new Response(body).text();
  return guardedFetch(url, { ...request, body: text }, networks);
}

/**
 * Returns a fetch function that reads at most a megabyte of the response, unpacked; it throws OidcError for a larger
 * one. A signal counts to the last byte.
 * @param networks allowed networks besides public addresses; without it, every address is allowed
 */
export function boundedFetch(networks: readonly string[] | undefined) {
  return async (url: string, options: CustomFetchOptions): Promise<Response> => {
    const response = await send(url, options, networks);
    const parts: Uint8Array[] = [];
    let size = 0;
    const incoming: AsyncIterable<Uint8Array> | Iterable<Uint8Array> = response.body ?? [];
    for await (const part of incoming) {
      size += part.byteLength;
      if (size > bytesMax) throw new OidcError('the response is larger than a megabyte');
      parts.push(part);
    }
    return new Response(size === 0 ? null : Buffer.concat(parts), {
      status: response.status,
      headers: response.headers,
    });
  };
}
