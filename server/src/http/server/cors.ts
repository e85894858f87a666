import type { FastifyReply, FastifyRequest } from 'fastify';
import { hour, second } from '../../base/clock.ts';

const methods = 'GET, POST, PUT, PATCH, DELETE';
const exposedHeaders =
  'x-session-token, x-request-id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset';
const maxAgeSeconds = String(hour / second);

/** Returns whether a request is a browser's preflight. */
function isPreflight({ method, headers }: FastifyRequest): boolean {
  return method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
}

/**
 * Returns a handler that tells browsers which origins may read responses (the CORS protocol of the Fetch standard), and
 * answers preflights. Requests without an Origin header, which includes all that aren't a browser's, pass untouched.
 * Cookies are not used, so credentials stay off. Rules: HTTP-22, HTTP-23.
 * @returns a function that returns whether it answered the request
 */
export function crossOriginRules(
  origins: () => readonly string[],
): (request: FastifyRequest, reply: FastifyReply) => boolean {
  function permit(request: FastifyRequest, reply: FastifyReply): void {
    const { headers } = request;
    const { origin } = headers;
    if (origin === undefined) return;
    reply.header('vary', 'Origin');
    if (!origins().includes(origin)) return;
    reply.headers({ 'access-control-allow-origin': origin, 'access-control-expose-headers': exposedHeaders });
    if (!isPreflight(request)) return;
    reply.headers({
      'access-control-allow-methods': methods,
      'access-control-allow-headers': headers['access-control-request-headers'] ?? '',
      'access-control-max-age': maxAgeSeconds,
    });
  }

  return (request, reply) => {
    permit(request, reply);
    if (!isPreflight(request)) return false;
    reply.code(204).send();
    return true;
  };
}
