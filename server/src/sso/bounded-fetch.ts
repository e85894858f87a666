import type { CustomFetchOptions } from 'openid-client';
import { OidcError } from './oidc.ts';

const bytesMax = 1_048_576;

/**
 * Fetches, and takes in at most a megabyte of the answer, unpacked; throws OidcError for a larger one. A signal counts to
 * the last byte.
 */
export async function boundedFetch(
  url: string,
  { body, headers, method, redirect, signal }: CustomFetchOptions,
): Promise<Response> {
  const request = { headers, method, redirect, ...(signal ? { signal } : {}) };
  const answer = await fetch(url, body === undefined ? request : { ...request, body });
  const parts: Uint8Array[] = [];
  let size = 0;
  const incoming: AsyncIterable<Uint8Array> | Iterable<Uint8Array> = answer.body ?? [];
  for await (const part of incoming) {
    size += part.byteLength;
    if (size > bytesMax) throw new OidcError('the answer is larger than a megabyte');
    parts.push(part);
  }
  return new Response(size === 0 ? null : Buffer.concat(parts), { status: answer.status, headers: answer.headers });
}
