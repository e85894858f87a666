import { randomInt } from 'node:crypto';
import { METHODS } from 'node:http';
import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type onRequestHookHandler,
  type RouteOptions,
} from 'fastify';
import type { Logger } from 'pino';
import { second } from '../clock.ts';
import { RefusedError } from '../errors.ts';
import type { Services } from '../services.ts';
import type { Authenticators } from './admission.ts';
import { answerBrokenRequest, answerError } from './answers.ts';
import { bodyBytesOf, parseBody } from './body.ts';
import { bodyBudgets } from './body-budget.ts';
import { clientAddress } from './client-address.ts';
import { crossOriginRules } from './cors.ts';
import { connectionDrain } from './drain.ts';
import { type AnyEndpoint, addressOf } from './endpoint.ts';
import { loadGate } from './load-gate.ts';
import { addOpenRoutes } from './open-routes.ts';
import { checkMessage, followsUnreadable, givenRequestId, hasBody, headersMax } from './request-rules.ts';
import { addEndpoint } from './route.ts';
import { streams } from './streams.ts';
import { trustedProxies } from './trusted-proxies.ts';
import { turnEnd } from './turn-end.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** When its headers were there, by the monotonic clock. */
    startedMs: number;
    /** Whether it came when there was too much to do, and is not even told in the log. */
    isTurnedAway: boolean;
  }
  interface FastifyContextConfig {
    /** The declaration behind a route. */
    endpoint?: AnyEndpoint;
    /** Why a route has no declaration: nothing personal is behind it. */
    open?: 'documentation' | 'page' | 'metrics' | 'refusal' | 'preflight';
  }
}

/** The HTTP side, ready to listen. */
export type App = FastifyInstance;

/** What the HTTP side is composed of. */
export interface AppParts {
  readonly services: Services;
  readonly endpoints: readonly AnyEndpoint[];
  readonly authenticate: Authenticators;
  readonly log: Logger;
}

const headersTimeoutMs = 10 * second;
const requestTimeoutMs = 30 * second;
const idleTimeoutMs = 75 * second;
const timeoutCheckMs = second;
/** Every method that can arrive: Node closes the connection of a CONNECT itself. */
const knownMethods = METHODS.filter((method) => method !== 'CONNECT');
/** Longer than any address that the header limit lets through, so that an id's own form is what judges it. */
const paramLengthMax = 65_536;

function requestIds(): (message?: Parameters<typeof givenRequestId>[0]) => string {
  const start = randomInt(2 ** 32).toString(36);
  let count = 0;
  return (message) => {
    count += 1;
    return (message && givenRequestId(message)) ?? `${start}-${count.toString(36)}`;
  };
}

function createFastify({ services, log }: AppParts, newRequestId: ReturnType<typeof requestIds>): FastifyInstance {
  const app = Fastify({
    logger: false,
    genReqId: (message) => newRequestId(message),
    requestIdHeader: false,
    trustProxy: trustedProxies(() => services.config.trustProxy),
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: idleTimeoutMs,
    connectionTimeout: idleTimeoutMs,
    http: { headersTimeout: headersTimeoutMs, connectionsCheckingInterval: timeoutCheckMs, requireHostHeader: false },
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    exposeHeadRoutes: true,
    routerOptions: { maxParamLength: paramLengthMax },
    clientErrorHandler: answerBrokenRequest(newRequestId),
    frameworkErrors: (error, request, reply) => {
      setCommonHeaders(request, reply);
      answerError({ log, metrics: services.metrics })(error, request, reply);
    },
  });
  // One more than allowed, so that the rule sees that there are too many.
  app.server.maxHeadersCount = headersMax + 1;
  // Asked for once while the peer is there, the address is known for as long as the socket is.
  app.server.on('connection', (socket) => socket.remoteAddress);
  const drain = connectionDrain(app.server);
  app.addHook('preClose', async () => drain());
  // Node would answer an expectation that it doesn't know by itself; it may as well be ignored (RFC 9110, section 10.1.1).
  app.server.on('checkExpectation', (message, response) => app.server.emit('request', message, response));
  const withBody = new Set(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
  for (const method of knownMethods) {
    if (!withBody.has(method)) app.addHttpMethod(method, { overrideExisting: true });
  }
  return app;
}

function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id);
  reply.header('cache-control', 'no-store');
  reply.header('x-content-type-options', 'nosniff');
}

/** A known address with another method is 405 and says which methods it takes. Rule: ERR-19. */
function refuseOtherMethods(app: FastifyInstance, endpoints: readonly AnyEndpoint[], open: readonly string[]): void {
  const methodsOf = new Map<string, string[]>(open.map((url) => [url, ['GET', 'HEAD']]));
  for (const endpoint of endpoints) {
    const methods = methodsOf.get(addressOf(endpoint)) ?? [];
    methods.push(endpoint.method, ...(endpoint.method === 'GET' ? ['HEAD'] : []));
    methodsOf.set(addressOf(endpoint), methods);
  }
  for (const [url, methods] of methodsOf) {
    const refuse = () => {
      throw new RefusedError('methodNotAllowed', { headers: { allow: methods.join(', ') } });
    };
    const method = knownMethods.filter((known) => !methods.includes(known));
    app.route({ method, url, config: { open: 'refusal' }, onRequest: refuse, handler: refuse });
  }
}

const nothingAfterSlash = /^[^?]*\/(\/|\?|$)/;

/** A slash at the end, or before another, makes another address; the router takes it for a parameter that is empty. */
function hasEmptyParam({ url, params }: FastifyRequest): boolean {
  if (!nothingAfterSlash.test(url)) return false;
  return typeof params === 'object' && params !== null && Object.values(params).includes('');
}

/** What every request meets first, on known and unknown addresses alike. Rules: HTTP-5, HTTP-17, HTTP-31. */
function firstRules(
  corsOrigins: () => readonly string[],
  isTooLate: ReturnType<typeof loadGate>,
): onRequestHookHandler {
  const answerCrossOrigin = crossOriginRules(corsOrigins);
  return (request, reply, done) => {
    request.startedMs = performance.now();
    if (followsUnreadable(request.raw)) {
      reply.hijack();
      return;
    }
    setCommonHeaders(request, reply);
    // Whoever asks whether the process lives would end it for being busy.
    if (isTooLate(request.startedMs) && !request.url.startsWith('/health/')) {
      request.isTurnedAway = true;
      done(new RefusedError('overloaded', { headers: { 'retry-after': '1' } }));
      return;
    }
    checkMessage(request.raw, bodyBytesOf(request));
    // The framework would judge the type of a body that isn't there.
    const hasType = request.headers['content-type'] !== undefined;
    if (hasType && !hasBody(request.raw)) delete request.raw.headers['content-type'];
    if (answerCrossOrigin(request, reply)) return;
    done(request.is404 || hasEmptyParam(request) ? new RefusedError('notFound') : undefined);
  };
}

/**
 * One line a request: what changed something or was refused is told, what was only read is told to who asks for more. So
 * is what agents ask for, whose calls are told one by one.
 */
function logRequest(log: Logger, request: FastifyRequest, reply: FastifyReply): void {
  const { method, routeOptions } = request;
  if (request.isTurnedAway) return;
  const isQuiet = method === 'GET' || method === 'HEAD' || routeOptions.config.endpoint?.isMcp === true;
  const isRead = isQuiet && reply.statusCode < 400;
  const level = isRead ? 'debug' : 'info';
  if (!log.isLevelEnabled(level)) return;
  log[level]({
    requestId: request.id,
    method,
    route: routeOptions.url,
    status: reply.statusCode,
    network: clientAddress(request),
    ms: Math.round(performance.now() - request.startedMs),
  });
}

/** Nothing is reachable that didn't say who may call it. Rule: RUN-10. */
function refuseUndeclared({ method, url, config }: RouteOptions): void {
  if (config?.endpoint || config?.open) return;
  throw new Error(`The route ${String(method)} ${url} has no declaration`);
}

/** Builds the HTTP side: every request passes the raw rules, then its endpoint's policy, then its schemas. */
export async function createApp(parts: AppParts): Promise<App> {
  const { services, endpoints, log } = parts;
  const newRequestId = requestIds();
  const app = createFastify(parts, newRequestId);
  app.decorateRequest('caller', null);
  app.decorateRequest('startedMs', 0);
  app.decorateRequest('isTurnedAway', false);
  const isTooLate = loadGate(app.server, log);
  app.addHook(
    'onRequest',
    firstRules(
      () => services.config.corsOrigins,
      (nowMs) => services.config.rateLimit && isTooLate(nowMs),
    ),
  );
  const atTurnEnd = turnEnd();
  app.addHook('onSend', (request, reply) => {
    logRequest(log, request, reply);
    return atTurnEnd();
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', parseBody);
  app.setErrorHandler(answerError({ log, metrics: services.metrics }));
  app.setNotFoundHandler(() => {
    throw new RefusedError('notFound');
  });
  app.addHook('onRoute', refuseUndeclared);
  const budgets = bodyBudgets();
  const open = streams(log);
  // Before the connections are closed that have no request in flight: a stream is one that would never end.
  app.addHook('preClose', async () => open.end());
  for (const endpoint of endpoints) addEndpoint(app, endpoint, { ...parts, budgets, streams: open });
  refuseOtherMethods(app, endpoints, addOpenRoutes(app, services, endpoints));
  return app;
}
