import { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ApiError, type ApiErrorName } from '../../base/errors.ts';
import type { Config } from '../../config/config.ts';
import { commonHeaders } from './common-headers.ts';
import { errorBody } from './error-responses.ts';
import { lingerUntilRead } from './lingering-close.ts';

/** What Node reports with a request that cannot be parsed. */
interface ParseError extends Error {
  readonly code?: string;
  /** The bytes that came last, in which the error is. */
  readonly rawPacket?: unknown;
}

function errorOf(code: string): ApiErrorName {
  if (code === 'HPE_HEADER_OVERFLOW') return 'headersTooLarge';
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'requestTooSlow' : 'unreadableRequest';
}

const reasons: Record<number, string> = { 400: 'Bad Request', 408: 'Request Timeout', 431: 'Header Fields Too Large' };

/** Returns the response in progress on this connection, from where Node's own handler of broken requests looks. */
function startedResponse(socket: Socket): ServerResponse | null {
  const pending: unknown = Reflect.get(socket, '_httpMessage');
  return pending instanceof ServerResponse ? pending : null;
}

const originLine = /^origin:[ \t]*([!-~]+)[ \t]*\r$/im;

/**
 * Returns the origin of a request that was not parsed: from its headers where these were, else from the bytes that came
 * last. They may be anything, a body included; the response says nothing that another page could not get itself.
 */
function originOf(pending: ServerResponse | null, { rawPacket }: ParseError): string | undefined {
  if (pending) return pending.req.headers.origin;
  return Buffer.isBuffer(rawPacket) ? originLine.exec(rawPacket.toString('latin1'))?.[1] : undefined;
}

/**
 * Returns the handler for requests that could not be parsed as HTTP, or arrived too slowly: responds and closes the
 * connection. Rules: HTTP-28, FIT-42.
 */
export function respondToBrokenRequest(newRequestId: () => string, config: () => Config) {
  /** Connections that have their response: what still arrives on them is dropped. */
  const answered = new WeakSet<Socket>();
  return (error: ParseError, socket: Socket): void => {
    if (answered.has(socket)) return;
    if (!socket.writable || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const pending = startedResponse(socket);
    // The response to an earlier, complete request of this connection is sent completely, and nothing after it. So is
    // one that has begun already.
    if (pending && (pending.req.complete || pending.headersSent)) {
      pending.shouldKeepAlive = false;
      pending.once('close', () => socket.destroy());
      return;
    }
    answered.add(socket);
    const refused = new ApiError(errorOf(error.code ?? ''));
    const requestId = newRequestId();
    const body = JSON.stringify(errorBody(refused, requestId));
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      ...commonHeaders(config(), { requestId, origin: originOf(pending, error) }),
      connection: 'close',
    };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    socket.end([`HTTP/1.1 ${refused.status} ${reasons[refused.status]}`, ...lines, '', body].join('\r\n'));
    lingerUntilRead(socket);
  };
}
