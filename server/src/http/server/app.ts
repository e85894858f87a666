import { randomInt } from 'node:crypto';
import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type onRequestHookHandler,
  type RouteOptions,
} from 'fastify';
import type { Logger } from 'pino';
import { second } from '../../base/clock.ts';
import { ApiError } from '../../base/errors.ts';
import type { AllServices } from '../../services.ts';
import { bodyBytesOf, parseBody } from '../body/body.ts';
import { bodyBudgets } from '../body/body-budget.ts';
import type { AnyEndpoint } from '../endpoint.ts';
import { checkMessage, followsUnreadable, givenRequestId, hasBody, headersMax } from '../request-rules.ts';
import { trustedProxies, untrustedProxyWarning } from '../trusted-proxies.ts';
import type { Authenticators } from './admission.ts';
import { crossOriginRules } from './cors.ts';
import { connectionDrain } from './drain.ts';
import { respondToBrokenRequest, sendError } from './error-responses.ts';
import { flushPerTick } from './flush-per-tick.ts';
import { loadShedder } from './load-shedder.ts';
import { addOpenRoutes } from './open-routes.ts';
import { hasEmptyParam, type NoRoute, refuseOtherMethods } from './other-methods.ts';
import { requestLog } from './request-log.ts';
import { responseBudgets } from './response-budget.ts';
import { addEndpoint } from './route.ts';
import { streams } from './streams.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Time when the headers had arrived, by the monotonic clock. */
    startedMs: number;
    /** Rejected because of overload, and not even logged. */
    isRejected: boolean;
  }
  interface FastifyContextConfig {
    /** The declaration behind a route. */
    endpoint?: AnyEndpoint;
    /** Why a route has no declaration: nothing personal is behind it. */
    open?: 'documentation' | 'page' | 'metrics' | 'refusal';
  }
}

/** The HTTP side, ready to listen. */
export type App = FastifyInstance;

/** Dependencies of the HTTP side. */
export interface AppParts {
  readonly services: AllServices;
  readonly endpoints: readonly AnyEndpoint[];
  readonly authenticate: Authenticators;
  readonly log: Logger;
  /** The log is read on a terminal, which has a line for every request; default: no. Rule: FIT-103. */
  readonly isLogOnTerminal?: boolean | undefined;
  /** Milliseconds that requests may wait to be read; default: that of the load gate. */
  readonly waitMsMax?: number | undefined;
}

const headersTimeoutMs = 10 * second;
const requestTimeoutMs = 30 * second;
const idleTimeoutMs = 75 * second;
const timeoutCheckMs = second;
/** Longer than any address within the header limit, so that ids are checked by their own form. */
const paramLengthMax = 65_536;

function requestIds(): (message?: Parameters<typeof givenRequestId>[0]) => string {
  const start = randomInt(2 ** 32).toString(36);
  let count = 0;
  return (message) => {
    count += 1;
    return (message && givenRequestId(message)) ?? `${start}-${count.toString(36)}`;
  };
}

/** Input is parsed by the schemas of endpoints: the framework need not load its own validator. */
function refuseSchemas(): never {
  throw new Error('a route has the framework read its input');
}

function createFastify(
  { services, log, isTrusted }: AppParts & { readonly isTrusted: (address: string) => boolean },
  newRequestId: ReturnType<typeof requestIds>,
): FastifyInstance {
  const app = Fastify({
    logger: false,
    genReqId: (message) => newRequestId(message),
    requestIdHeader: false,
    trustProxy: isTrusted,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: idleTimeoutMs,
    connectionTimeout: idleTimeoutMs,
    http: { headersTimeout: headersTimeoutMs, connectionsCheckingInterval: timeoutCheckMs, requireHostHeader: false },
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    exposeHeadRoutes: true,
    schemaController: { compilersFactory: { buildValidator: refuseSchemas } },
    routerOptions: { maxParamLength: paramLengthMax },
    clientErrorHandler: respondToBrokenRequest(newRequestId),
    frameworkErrors: (error, request, reply) => {
      setCommonHeaders(request, reply);
      sendError({ log, metrics: services.metrics })(error, request, reply);
    },
  });
  // One more than allowed, so that the rule sees that there are too many.
  app.server.maxHeadersCount = headersMax + 1;
  // Asked for once while the peer is there, the address is known for as long as the socket is.
  app.server.on('connection', (socket) => socket.remoteAddress);
  const drain = connectionDrain(app.server);
  app.addHook('preClose', async () => drain());
  // Node would reject an unknown expectation; it may as well be ignored (RFC 9110, section 10.1.1).
  app.server.on('checkExpectation', (message, response) => app.server.emit('request', message, response));
  return app;
}

function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id);
  reply.header('cache-control', 'no-store');
  reply.header('x-content-type-options', 'nosniff');
}

interface FirstRules {
  readonly corsOrigins: () => readonly string[];
  readonly isTooLate: ReturnType<typeof loadShedder>;
  readonly noRoute: NoRoute;
  readonly warnOfProxy: ReturnType<typeof untrustedProxyWarning>;
}

/**
 * Adds the rules that apply to every request first, on known and unknown addresses alike. Rules: HTTP-5, HTTP-17,
 * HTTP-31.
 */
function firstRules({ corsOrigins, isTooLate, noRoute, warnOfProxy }: FirstRules): onRequestHookHandler {
  const respondCrossOrigin = crossOriginRules(corsOrigins);
  const unrouted = ({ url, params, is404 }: FastifyRequest) => {
    if (is404) return noRoute(url);
    return hasEmptyParam(url, params) ? new ApiError('notFound') : undefined;
  };
  return (request, reply, done) => {
    request.startedMs = performance.now();
    if (followsUnreadable(request.raw)) {
      reply.hijack();
      return;
    }
    setCommonHeaders(request, reply);
    warnOfProxy(request.raw);
    // A liveness check that got 503 would restart a busy process.
    if (isTooLate(request.startedMs) && !request.url.startsWith('/health/')) {
      request.isRejected = true;
      done(new ApiError('overloaded', { headers: { 'retry-after': '1' } }));
      return;
    }
    checkMessage(request.raw, bodyBytesOf(request));
    // The framework would check the type of an absent body.
    const hasType = request.headers['content-type'] !== undefined;
    if (hasType && !hasBody(request.raw)) delete request.raw.headers['content-type'];
    if (respondCrossOrigin(request, reply)) return;
    done(unrouted(request));
  };
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
  const isTrusted = trustedProxies(() => services.config.trustProxy);
  const app = createFastify({ ...parts, isTrusted }, newRequestId);
  app.decorateRequest('caller', null);
  app.decorateRequest('startedMs', 0);
  app.decorateRequest('isTurnedAway', false);
  app.decorateRequest('scope', null);
  const isTooLate = loadShedder(app.server, log, parts.waitMsMax);
  let noRoute: NoRoute = () => new ApiError('notFound');
  app.addHook(
    'onRequest',
    firstRules({
      corsOrigins: () => services.config.corsOrigins,
      isTooLate: (nowMs) => services.config.rateLimit && isTooLate(nowMs),
      noRoute: (url) => noRoute(url),
      warnOfProxy: untrustedProxyWarning(log, isTrusted),
    }),
  );
  const logRequest = requestLog(parts);
  const atTickEnd = flushPerTick();
  const holdResponse = responseBudgets();
  app.addHook('onSend', (request, reply, payload) => {
    holdResponse(payload, request, reply);
    logRequest(request, reply);
    return atTickEnd();
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', parseBody);
  app.setErrorHandler(sendError({ log, metrics: services.metrics }));
  app.setNotFoundHandler(() => {
    throw new ApiError('notFound');
  });
  app.addHook('onRoute', refuseUndeclared);
  const budgets = bodyBudgets();
  const open = streams(log);
  // Before the connections are closed that have no request in flight: a stream is one that would never end.
  app.addHook('preClose', async () => open.end());
  for (const endpoint of endpoints) addEndpoint(app, endpoint, { ...parts, budgets, streams: open });
  noRoute = refuseOtherMethods(app, endpoints, addOpenRoutes(app, services, endpoints));
  return app;
}
