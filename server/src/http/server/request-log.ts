import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { clientAddress } from '../client-address.ts';

const pathMax = 200;

interface RequestLogParts {
  readonly log: Logger;
  readonly isLogOnTerminal?: boolean | undefined;
}

/** Names the caller for a reader at a terminal: the kind of credential, and whose it is. */
function callerText({ caller }: FastifyRequest): string {
  if (!caller) return 'no credential';
  if (caller.kind === 'service') return `service ${caller.clientId ?? 'with a token of its own'}`;
  return `${caller.kind} of ${caller.userId}${caller.isAdmin ? ' (administrator)' : ''}`;
}

/**
 * Returns what logs one line per request: at `info` for what changed something or was rejected, at `debug` for what was
 * only read. The latter holds for requests of agents too, whose calls are logged one by one. On a terminal, every request
 * is logged at `info`, with its path (without the query) and its caller. Rules: RUN-6, FIT-103.
 */
export function requestLog({ log, isLogOnTerminal = false }: RequestLogParts) {
  return (request: FastifyRequest, reply: FastifyReply): void => {
    const { method, routeOptions } = request;
    if (request.isRejected) return;
    const isQuiet = method === 'GET' || method === 'HEAD' || routeOptions.config.endpoint?.isMcp === true;
    const isRead = isQuiet && reply.statusCode < 400;
    const level = isRead && !isLogOnTerminal ? 'debug' : 'info';
    if (!log.isLevelEnabled(level)) return;
    const [whole = ''] = request.url.split('?', 1);
    // Between segments: part of a secret would not be recognized as one.
    const path = whole.length > pathMax ? whole.slice(0, pathMax).replace(/[^/]*$/, '…') : whole;
    log[level]({
      requestId: request.id,
      method,
      route: routeOptions.url,
      status: reply.statusCode,
      network: clientAddress(request),
      ms: Math.round(performance.now() - request.startedMs),
      ...(isLogOnTerminal ? { path, who: callerText(request) } : {}),
    });
  };
}
