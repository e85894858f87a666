import { hour, second } from '../../base/clock.ts';
import { ForbiddenAddressError } from '../../outbound/address-guard.ts';
import type { SinkFailure } from '../relay/sink.ts';

/** Thrown for an exchange that took too long. */
export class LateError extends Error {
  override readonly name = 'LateError';
}

/** Rejections that may succeed the next time. */
const passing = new Set([408, 425, 429]);
const retryAfterMsMax = hour;

/** Short descriptions of connection errors. */
const words: Readonly<Record<string, string>> = {
  ENOTFOUND: 'the name does not resolve',
  EAI_AGAIN: 'the name could not be resolved',
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was lost',
  EPIPE: 'the connection was lost',
  UND_ERR_SOCKET: 'the connection was lost',
  UND_ERR_DESTROYED: 'the connection was ended here',
  UND_ERR_CLOSED: 'the connection was ended here',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
  ETIMEDOUT: 'no connection in time',
  EHOSTUNREACH: 'the address cannot be reached',
  ENETUNREACH: 'the address cannot be reached',
};
const tlsForm = /^(?:CERT_|ERR_TLS_|ERR_SSL_|EPROTO$)|CERT|ISSUER|SIGNATURE|CRL/;

/** Returns the reason why an attempt got no response, in a few words: for administrators. */
export function reasonOf(error: unknown): string {
  if (error instanceof ForbiddenAddressError) return error.message;
  if (error instanceof LateError) return 'no response in time';
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const known = words[code];
  if (known !== undefined) return known;
  if (code.startsWith('HPE_')) return 'the response is not valid HTTP';
  return tlsForm.test(code) ? `the connection is not secure: ${code}` : `failed: ${code || 'for an unknown reason'}`;
}

/** Returns the delay of `Retry-After` in milliseconds, at most an hour; `null` where it is unreadable. */
function readRetryAfter(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null;
  const ms = /^\d+$/.test(header) ? Number(header) * second : Date.parse(header) - nowMs;
  return Number.isNaN(ms) || ms <= 0 ? null : Math.min(ms, retryAfterMsMax);
}

/** Head of a response. */
export interface ResponseHead {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

/**
 * Returns the reason why a response means that the message did not arrive; `null`: it did. Rules: EVENT-23, EVENT-26.
 */
export function failureOf({ status, retryAfter }: ResponseHead, nowMs: number): SinkFailure | null {
  if (status >= 200 && status < 300) return null;
  if (status === 410) return { kind: 'gone', reason: 'answered 410' };
  if (status >= 300 && status < 400)
    return { kind: 'unavailable', reason: `answered ${status}: redirects are not followed` };
  const reason = `answered ${status}`;
  if (status >= 400 && status < 500 && !passing.has(status)) return { kind: 'refused', reason };
  const retryAfterMs = readRetryAfter(retryAfter, nowMs);
  return { kind: 'unavailable', reason, ...(retryAfterMs === null ? {} : { retryAfterMs }) };
}
