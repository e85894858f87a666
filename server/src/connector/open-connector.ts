import { setTimeout as pause } from 'node:timers/promises';
import { type Dispatcher, Pool } from 'undici';
import { type Clock, second } from '../base/clock.ts';
import { ApiError, refuseTooMany } from '../base/errors.ts';
import { KeyedCounter } from '../base/keyed-counter.ts';
import { Scope } from '../base/scope.ts';
import { Attempt } from './attempt.ts';
import { circuitBreaker } from './circuit-breaker.ts';
import type { Connector, ConnectorRequest, ConnectorResponse } from './connector.ts';
import { refuseResponse, refuseTimeout, refuseUnavailable } from './connector-errors.ts';
import { RetirablePool } from './retirable-pool.ts';

const exchangeMsMax = 10 * second;
const connectionsMax = 32;
/** Requests beyond those that have a connection; later ones get a 503. */
const waitingMax = 64;
/** Requests of one user, running and waiting. */
const ofOneMax = 8;
const retryAfterSeconds = 1;
/** A GET whose connection fails is sent again after each of these. */
const pausesMs = [100, 300] as const;
/** Refused, or reset: codes of the pool when the other side closes. */
const connectionLost = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);
const segmentForm = /^(?:[A-Za-z0-9_~.:-]|%[0-9A-Fa-f]{2})+$/;
const separators = /[/\\\0]/;

interface ConnectorOptions {
  /** The backend's address, with a path where it has one and without a slash at the end. */
  readonly url: string;
  /** Clock that the pauses of the circuit breaker are measured by. */
  readonly clock: Clock;
  /** For a whole exchange, waiting included; 10 seconds. */
  readonly timeoutMs?: number;
}

function refuseBusy(): ApiError {
  return new ApiError('overloaded', { headers: { 'retry-after': String(retryAfterSeconds) } });
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** Converts an error of the connection to one for our caller. A mistake of our own stays as it is. */
function errorFor(error: unknown, hasStarted: boolean): unknown {
  const code = codeOf(error);
  if (error instanceof ApiError || code === 'UND_ERR_INVALID_ARG') return error;
  const cause = `${code} ${error instanceof Error ? error.message : ''}`.trim();
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return refuseTimeout(cause);
  const isResponse = hasStarted || code.startsWith('HPE_');
  return isResponse ? refuseResponse(cause) : refuseUnavailable(cause);
}

/** The path of an operation, which no id in it can leave. */
function checkPath(path: string): void {
  const isPlain = (segment: string) => {
    if (!segmentForm.test(segment)) return false;
    const text = decodeURIComponent(segment);
    return text !== '.' && text !== '..' && !separators.test(text);
  };
  if (!path.slice(1).split('/').every(isPlain)) throw new Error('not a path of the connector backend');
}

function optionsFor(basePath: string, request: ConnectorRequest): Dispatcher.DispatchOptions {
  const { method, path, query = {}, body, credential, requestId, clientName } = request;
  checkPath(path);
  const pairs = Object.entries(query).map(
    ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`,
  );
  return {
    method,
    path: basePath + path + (pairs.length > 0 ? `?${pairs.join('&')}` : ''),
    headers: {
      authorization: `Bearer ${credential.expose()}`,
      'content-type': 'application/json',
      'x-request-id': requestId,
      'client-name': clientName,
      // What isn't compressed cannot be a bomb.
      'accept-encoding': 'identity',
    },
    body: body === undefined ? null : JSON.stringify(body),
  };
}

interface Sending {
  readonly pool: Pool;
  readonly options: Dispatcher.DispatchOptions;
  readonly signal: AbortSignal;
  /** Each is added when it begins. */
  readonly attempts: Attempt[];
}

/** Sends a request, a GET again where the connection fails before any part of a response arrived. Rule: TEAM-8. */
async function send({ pool, options, signal, attempts }: Sending): Promise<ConnectorResponse> {
  for (let count = 0; ; count += 1) {
    const attempt = new Attempt(signal);
    attempts.push(attempt);
    pool.dispatch(options, attempt);
    try {
      return await attempt.response;
    } catch (error) {
      const pauseMs = pausesMs[count];
      const mayTryAgain = options.method === 'GET' && !attempt.hasStarted && connectionLost.has(codeOf(error));
      if (pauseMs === undefined || !mayTryAgain) throw errorFor(error, attempt.hasStarted);
      await pause(pauseMs, undefined, { signal }).catch(() => {
        throw signal.reason;
      });
    }
  }
}

function openPool(origin: string, timeoutMs: number): Pool {
  return new Pool(origin, {
    connections: connectionsMax,
    pipelining: 1,
    // One time for the whole exchange stands for those of its parts.
    connect: { timeout: timeoutMs },
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

/**
 * The client of a connector backend. Nothing is connected before the first exchange; connections, and requests that
 * wait for one, are bounded. Rules: TEAM-4 to TEAM-8, TEAM-11, TEAM-30.
 */
export function openConnector({ url, clock, timeoutMs = exchangeMsMax }: ConnectorOptions): Connector {
  const { origin, pathname } = new URL(url);
  const basePath = pathname.replace(/\/+$/, '');
  const pool = new RetirablePool(() => openPool(origin, timeoutMs));
  const breaker = circuitBreaker(clock);
  const senders = new KeyedCounter('connector exchanges');

  async function exchange(request: ConnectorRequest): Promise<ConnectorResponse> {
    const options = optionsFor(basePath, request);
    const controller = new AbortController();
    const attempts: Attempt[] = [];
    // Who only ever waited for a turn says nothing of the backend.
    const isQueued = pool.users >= connectionsMax;
    const isOurs = () => isQueued && !attempts.at(-1)?.hasConnected;
    const late = () => controller.abort(isOurs() ? refuseBusy() : refuseTimeout(`after ${timeoutMs} ms`));
    const scope = new Scope();
    const timer = setTimeout(late, timeoutMs);
    scope.hold(() => clearTimeout(timer));
    const taken = pool.take();
    scope.hold(() => pool.giveBack());
    if (request.sender !== undefined) senders.take(scope, request.sender);
    try {
      return await send({ pool: taken, options, signal: controller.signal, attempts });
    } finally {
      // An error response may still be arriving, and an aborted attempt may still wait for its connection.
      void Promise.resolve(attempts.at(-1)?.released).then(() => scope.end());
    }
  }

  return {
    exchange: async (request) => {
      if (senders.of(request.sender ?? '') >= ofOneMax) throw refuseTooMany(ofOneMax, retryAfterSeconds);
      if (pool.users >= connectionsMax + waitingMax) throw refuseBusy();
      return breaker.run(() => exchange(request), request.sender);
    },
    close: () => pool.destroy(),
    retire: () => pool.retire(),
  };
}
