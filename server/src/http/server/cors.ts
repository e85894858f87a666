import type { FastifyReply, FastifyRequest } from 'fastify';
import { hour, second } from '../../base/clock.ts';

const methods = 'GET, POST, PUT, PATCH, DELETE';
const exposedHeaders =
  'x-session-token, x-request-id, ETag, Location, Idempotency-Replayed, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset';
const maxAgeSeconds = String(hour / second);

/**
 * Returns the headers that tell a browser whether a page may read a response (the CORS protocol of the Fetch standard):
 * none without an Origin header, which includes all callers that aren't browsers. Allowed origins may send credentials,
 * as front ends do that ask for them with every call; cookies decide nothing here. Rules: HTTP-22, HTTP-23.
 */
export function crossOriginHeaders(origin: string | undefined, allowed: readonly string[]): Record<string, string> {
  if (origin === undefined) return {};
  if (!allowed.includes(origin)) return { vary: 'Origin' };
  return {
    vary: 'Origin',
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': exposedHeaders,
  };
}

/** Answers a browser's preflight, whatever its address. Rule: HTTP-22. @returns whether the request is one */
export function answerPreflight({ method, headers }: FastifyRequest, reply: FastifyReply): boolean {
  const asked = headers['access-control-request-method'];
  if (method !== 'OPTIONS' || headers.origin === undefined || asked === undefined) return false;
  if (reply.hasHeader('access-control-allow-origin')) {
    reply.headers({
      'access-control-allow-methods': methods,
      'access-control-allow-headers': headers['access-control-request-headers'] ?? '',
      'access-control-max-age': maxAgeSeconds,
    });
  }
  reply.code(204).send();
  return true;
}
