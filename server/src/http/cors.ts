import type { FastifyReply, FastifyRequest } from 'fastify';
import { hour, second } from '../clock.ts';

const methods = 'GET, POST, PUT, PATCH, DELETE';
const exposedHeaders =
  'x-session-token, x-request-id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset';
const maxAgeSeconds = String(hour / second);

/**
 * Tells browsers which origins may read answers (the CORS protocol of the Fetch standard), and answers OPTIONS, which
 * does nothing else here. Requests without an Origin header, which is all that aren't a browser's, pass untouched.
 * Cookies play no part, so credentials stay off. Rules: HTTP-22, HTTP-23.
 * @returns what looks at a request and says whether it answered it
 */
export function crossOriginRules(
  origins: readonly string[],
): (request: FastifyRequest, reply: FastifyReply) => boolean {
  const allowed = new Set(origins);

  function permit({ headers, method }: FastifyRequest, reply: FastifyReply): void {
    const { origin } = headers;
    if (origin === undefined) return;
    reply.header('vary', 'Origin');
    if (!allowed.has(origin)) return;
    reply.headers({ 'access-control-allow-origin': origin, 'access-control-expose-headers': exposedHeaders });
    if (method !== 'OPTIONS') return;
    reply.headers({
      'access-control-allow-methods': methods,
      'access-control-allow-headers': headers['access-control-request-headers'] ?? '',
      'access-control-max-age': maxAgeSeconds,
    });
  }

  return (request, reply) => {
    permit(request, reply);
    if (request.method !== 'OPTIONS') return false;
    reply.code(204).send();
    return true;
  };
}
