import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { ApiError, hasErrorMessage, oauthError } from '../../base/errors.ts';
import { isStoreFailure, StoreLostError } from '../../db/failures.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { AnyEndpoint } from '../endpoint.ts';
import { isUpload } from '../media.ts';

/** Returns the body of an error of an OAuth endpoint; the description is printable ASCII (RFC 6749, section 5.2). */
function oauthBody(refused: ApiError) {
  return { error: oauthError(refused), error_description: refused.message.replace(/[^ !#-[\]-~]/g, "'") };
}

/** The codes of JSON-RPC 2.0, section 5.1; the last is of those that servers may define. */
const rpcCodes = { unreadable: -32_700, internal: -32_603, refused: -32_000 } as const;

function rpcCodeOf({ status, code }: ApiError): number {
  if (code === 'VALIDATION_ERROR') return rpcCodes.unreadable;
  return status >= 500 ? rpcCodes.internal : rpcCodes.refused;
}

/**
 * Returns the body of an error of an endpoint that speaks JSON-RPC, for a message that was not understood. Rule: ERR-5.
 */
function rpcBody(refused: ApiError, requestId: string) {
  const { code, message } = refused;
  return { jsonrpc: '2.0', id: null, error: { code: rpcCodeOf(refused), message, data: { code, requestId } } };
}

/** Returns the body of an error, in both spellings that clients read, or in the specified one. Rules: ERR-2, ERR-4. */
export function errorBody(refused: ApiError, requestId: string, endpoint?: Pick<AnyEndpoint, 'isOAuth' | 'isMcp'>) {
  if (endpoint?.isOAuth) return oauthBody(refused);
  if (endpoint?.isMcp) return rpcBody(refused, requestId);
  const { code, message, details, more } = refused;
  if (hasErrorMessage(refused.errorName)) return { errorMessage: message };
  return { message, ...more, error: { code, message, requestId, ...(details ? { details } : {}) } };
}

/** Converts errors of the framework to ours. */
function fromFramework(error: unknown, { routeOptions }: FastifyRequest): ApiError | null {
  // A connection of ours that was reset has the code of a caller's.
  if (error instanceof StoreLostError) return null;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  switch (code) {
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new ApiError(isUpload(routeOptions.config.endpoint?.body) ? 'bodyNotForm' : 'bodyNotJson');
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
    case 'ECONNRESET':
      return new ApiError('unreadableRequest');
    default:
      return null;
  }
}

interface FaultParts {
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Converts a fault of ours: logged once, with a neutral response. Rules: ERR-6, ERR-25. */
function fromFault(error: unknown, requestId: string, { log, metrics }: FaultParts): ApiError {
  const isStore = isStoreFailure(error);
  metrics.countFault(isStore ? 'store' : 'internal');
  log.error({ err: error, requestId }, isStore ? 'the store failed' : 'request failed');
  return isStore ? new ApiError('storeUnavailable', { headers: { 'retry-after': '5' } }) : new ApiError('internal');
}

/** Logs a fault of another system once: it is no fault of ours. */
function noteUpstreamFault(
  { errorName: error, cause }: ApiError,
  requestId: string,
  { log, metrics }: FaultParts,
): void {
  if (cause === undefined) return;
  metrics.countUpstreamFault(error);
  log.warn({ requestId, refusal: error, cause }, 'another system failed a request');
}

/** Returns the response to anything that was thrown; a fault of ours is logged once. */
export function describeFault(error: unknown, requestId: string, parts: FaultParts): ApiError {
  const refused = error instanceof ApiError ? error : fromFault(error, requestId, parts);
  noteUpstreamFault(refused, requestId, parts);
  return refused;
}

/** Returns the handler that turns errors into responses, for every route alike. */
export function sendError(parts: FaultParts) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const refused = describeFault(fromFramework(error, request) ?? error, request.id, parts);
    reply
      .code(refused.status)
      .headers(refused.headers)
      .type('application/json; charset=utf-8')
      // The declared schema is that of success; an error has its own form.
      .serializer(JSON.stringify)
      .send(errorBody(refused, request.id, request.routeOptions.config?.endpoint));
  };
}
