import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler, RouteOptions } from 'fastify';
import type { Logger } from 'pino';
import { ApiError } from '../../base/errors.ts';
import type { Config } from '../../config/config.ts';
import type { AllServices } from '../../services.ts';
import { bodyBytesOf, parseBody } from '../body/body.ts';
import { bodyBudgets } from '../body/body-budget.ts';
import type { AnyEndpoint } from '../endpoint.ts';
import type { Operation } from '../operations.ts';
import { checkMessage, followsUnreadable, hasBody } from '../request-rules.ts';
import { forwardingWarnings, trustedProxies } from '../trusted-proxies.ts';
import type { Authenticators } from './admission.ts';
import { answerPreflight } from './cors.ts';
import { createFastify, setCommonHeaders } from './create-fastify.ts';
import { sendError } from './error-responses.ts';
import { flushPerTick } from './flush-per-tick.ts';
import { lingerAfter } from './lingering-close.ts';
import { loadShedder } from './load-shedder.ts';
import { addOpenRoutes } from './open-routes.ts';
import { hasEmptyParam, type NoRoute, refuseOtherMethods, widerRemovals } from './other-methods.ts';
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
  readonly endpoints: readonly Operation[];
  readonly authenticate: Authenticators;
  readonly log: Logger;
  /** The log is read on a terminal, which has a line for every request; default: no. Rule: FIT-103. */
  readonly isLogOnTerminal?: boolean | undefined;
  /** Milliseconds that requests may wait to be read; default: that of the load gate. */
  readonly waitMsMax?: number | undefined;
}

interface FirstRules {
  readonly config: () => Config;
  readonly isTooLate: ReturnType<typeof loadShedder>;
  readonly noRoute: NoRoute;
  /** See `widerRemovals`. */
  readonly wider: ReadonlySet<string>;
  readonly warnOfProxy: ReturnType<typeof forwardingWarnings>;
}

/**
 * Adds the rules that apply to every request first, on known and unknown addresses alike. Rules: HTTP-5, HTTP-17,
 * HTTP-31.
 */
function firstRules({ config, isTooLate, noRoute, wider, warnOfProxy }: FirstRules): onRequestHookHandler {
  const removesMore = ({ method, url, routeOptions }: FastifyRequest) =>
    method === 'DELETE' && /^[^?]*\/(\?|$)/.test(url) && wider.has(routeOptions.url?.replace(/\/$/, '') ?? '');
  const unrouted = (request: FastifyRequest) => {
    const { url, params, is404 } = request;
    if (is404) return noRoute(url);
    return hasEmptyParam(url, params) || removesMore(request) ? new ApiError('notFound') : undefined;
  };
  return (request, reply, done) => {
    request.startedMs = performance.now();
    if (followsUnreadable(request.raw)) {
      reply.hijack();
      return;
    }
    setCommonHeaders(config(), request, reply);
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
    if (answerPreflight(request, reply)) return;
    done(unrouted(request));
  };
}

function hasArrived({ raw }: FastifyRequest): boolean {
  return raw.complete || !hasBody(raw);
}

/**
 * Announces that the connection closes after a response that leaves before its request has arrived. Only the end of the
 * tick shows what came together with the headers. Rule: FIT-44.
 */
function closeAfterEarlyResponse(request: FastifyRequest, reply: FastifyReply): void {
  if (hasArrived(request)) return;
  reply.header('connection', 'close');
  lingerAfter(request.raw);
}

/** Nothing is reachable that didn't say who may call it. Rule: RUN-10. */
function refuseUndeclared({ method, url, config }: RouteOptions): void {
  if (config?.endpoint || config?.open) return;
  throw new Error(`The route ${String(method)} ${url} has no declaration`);
}

/** Builds the HTTP side: every request passes the raw rules, then its endpoint's policy, then its schemas. */
export async function createApp(parts: AppParts): Promise<App> {
  const { services, endpoints, log } = parts;
  const isTrusted = trustedProxies(() => services.config.trustProxy);
  const app = createFastify({ ...parts, isTrusted });
  app.decorateRequest('caller', null);
  app.decorateRequest('startedMs', 0);
  app.decorateRequest('isTurnedAway', false);
  app.decorateRequest('scope', null);
  const isTooLate = loadShedder(app.server, log, parts.waitMsMax);
  let noRoute: NoRoute = () => new ApiError('notFound');
  app.addHook(
    'onRequest',
    firstRules({
      config: () => services.config,
      isTooLate: (nowMs) => services.config.rateLimit && isTooLate(nowMs),
      noRoute: (url) => noRoute(url),
      wider: widerRemovals(parts.endpoints),
      warnOfProxy: forwardingWarnings(log, isTrusted),
    }),
  );
  const logRequest = requestLog(parts);
  const atTickEnd = flushPerTick();
  const holdResponse = responseBudgets();
  app.addHook('onSend', (request, reply, payload) => {
    holdResponse(payload, request, reply);
    logRequest(request, reply);
    services.metrics.countRequest(
      { method: request.method, route: request.routeOptions.url },
      { status: reply.statusCode, ms: performance.now() - request.startedMs },
    );
    const ended = atTickEnd();
    return hasArrived(request) ? ended : ended.then(() => closeAfterEarlyResponse(request, reply));
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
