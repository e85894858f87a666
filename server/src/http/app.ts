import cors from '@fastify/cors';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest, type RouteOptions } from 'fastify';
import type { Logger } from 'pino';
import type { Authenticate } from '../access/authenticator.ts';
import { readBearer } from '../access/bearer.ts';
import { type Limits, networkOf } from '../access/limits.ts';
import { admit } from '../access/policy.ts';
import type { Principal } from '../access/principal.ts';
import { hour, second } from '../clock.ts';
import { RefusedError } from '../errors.ts';
import type { Services } from '../services.ts';
import { answerBrokenRequest, answerError } from './answers.ts';
import { type AnyEndpoint, WithHeaders } from './endpoint.ts';
import { inputReader } from './input.ts';
import { addOpenRoutes } from './open-routes.ts';
import { bodyBytesMax, checkMessage, givenRequestId, headersMax, readJsonBody } from './request-rules.ts';
import { serializerSchema } from './schemas.ts';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Principal | null;
  }
  interface FastifyContextConfig {
    /** The declaration behind a route. */
    endpoint?: AnyEndpoint;
    /** Why a route has no declaration: nothing personal is behind it. */
    open?: 'documentation' | 'metrics' | 'refusal' | 'preflight';
  }
}

/** What the HTTP side is composed of. */
export interface AppParts {
  readonly services: Services;
  readonly endpoints: readonly AnyEndpoint[];
  readonly authenticate: Authenticate;
  readonly log: Logger;
}

/** Where almost all endpoints live. */
export const apiPrefix = '/api/v1';

const headersTimeoutMs = 10 * second;
const requestTimeoutMs = 30 * second;
const idleTimeoutMs = 75 * second;
const timeoutCheckMs = second;
const knownMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'];
const exposedHeaders = [
  'x-session-token',
  'x-request-id',
  'Retry-After',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
];

/** The whole address of an endpoint, parameters as `:name`. */
export function addressOf({ root, path }: Pick<AnyEndpoint, 'root' | 'path'>): string {
  return root ? path : apiPrefix + path;
}

function requestIds(): (message?: Parameters<typeof givenRequestId>[0]) => string {
  const start = Math.floor(Math.random() * 0xffffffff).toString(36);
  let count = 0;
  return (message) => {
    count += 1;
    return (message && givenRequestId(message)) ?? `${start}-${count.toString(36)}`;
  };
}

function createFastify({ services, log }: AppParts, newRequestId: ReturnType<typeof requestIds>): FastifyInstance {
  const { trustProxy } = services.config;
  const app = Fastify({
    logger: false,
    genReqId: (message) => newRequestId(message),
    requestIdHeader: false,
    trustProxy: trustProxy.length > 0 ? [...trustProxy] : false,
    bodyLimit: bodyBytesMax,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: idleTimeoutMs,
    connectionTimeout: idleTimeoutMs,
    http: { headersTimeout: headersTimeoutMs, connectionsCheckingInterval: timeoutCheckMs, requireHostHeader: false },
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    exposeHeadRoutes: true,
    routerOptions: { maxParamLength: 500 },
    clientErrorHandler: answerBrokenRequest(newRequestId),
    frameworkErrors: (error, request, reply) => {
      setCommonHeaders(request, reply);
      answerError({ log, metrics: services.metrics })(error, request, reply);
    },
  });
  // One more than allowed, so that the rule sees that there are too many.
  app.server.maxHeadersCount = headersMax + 1;
  return app;
}

function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id);
  reply.header('cache-control', 'no-store');
  reply.header('x-content-type-options', 'nosniff');
}

/** Bad credentials get their 401, and from one network only so many of them; good ones are never held back by that. */
async function countBadCredential(limits: Limits, error: unknown, network: string): Promise<never> {
  if (error instanceof RefusedError && error.status === 401) await limits.count('badCredential', networkOf(network));
  throw error;
}

function admission(endpoint: AnyEndpoint, { authenticate, services }: AppParts) {
  const { policy } = endpoint;
  const { limits } = services;

  async function prove(request: FastifyRequest): Promise<void> {
    const { authorization } = request.headers;
    if (policy.who === 'holder') {
      readBearer(authorization, []);
      return;
    }
    const caller = await authenticate(authorization).catch((error) => countBadCredential(limits, error, request.ip));
    admit(policy, caller, request.params as Readonly<Record<string, string>>);
    request.caller = caller;
  }

  return async (request: FastifyRequest): Promise<void> => {
    if (policy.who !== 'anyone') await prove(request);
    await endpoint.precondition?.(services);
  };
}

function addEndpoint(app: FastifyInstance, endpoint: AnyEndpoint, parts: AppParts): void {
  const [status, schema] = Object.entries(endpoint.response)[0] ?? [];
  if (status === undefined || schema === undefined || !endpoint.policy) {
    throw new Error(`${endpoint.method} ${endpoint.path} declares no response or no policy`);
  }
  const readInput = inputReader(endpoint);
  app.route({
    method: endpoint.method,
    url: addressOf(endpoint),
    config: { endpoint },
    schema: { response: { [status]: serializerSchema(schema) } },
    onRequest: admission(endpoint, parts),
    handler: async (request, reply) => {
      const answer = await endpoint.handle(parts.services, readInput(request) as never);
      reply.code(Number(status));
      if (!(answer instanceof WithHeaders)) return answer;
      reply.headers(answer.headers);
      return answer.body;
    },
  });
}

/** A known address with another method is 405 and says which methods it takes. Rule: ERR-19. */
function refuseOtherMethods(app: FastifyInstance, endpoints: readonly AnyEndpoint[]): void {
  const methodsOf = new Map<string, string[]>();
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

/** Nothing is reachable that didn't say who may call it. Rule: RUN-10. */
function refuseUndeclared({ method, url, config }: RouteOptions): void {
  if (config?.endpoint || config?.open) return;
  throw new Error(`The route ${String(method)} ${url} has no declaration`);
}

/** Builds the HTTP side: every request passes the raw rules, then its endpoint's policy, then its schemas. */
export async function createApp(parts: AppParts): Promise<FastifyInstance> {
  const { services, endpoints, log } = parts;
  const newRequestId = requestIds();
  const app = createFastify(parts, newRequestId);
  app.decorateRequest('caller', null);
  app.addHook('onRequest', (request, reply, done) => {
    setCommonHeaders(request, reply);
    checkMessage(request.raw);
    done();
  });
  await app.register(cors, {
    origin: [...services.config.corsOrigins],
    methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    exposedHeaders,
    maxAge: hour / second,
    strictPreflight: false,
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, async (request: FastifyRequest, bytes: Buffer) =>
    readJsonBody(request.headers['content-type'], bytes),
  );
  app.setErrorHandler(answerError({ log, metrics: services.metrics }));
  app.setNotFoundHandler(() => {
    throw new RefusedError('notFound');
  });
  if (log.isLevelEnabled('debug')) {
    app.addHook('onResponse', async (request, reply) => {
      log.debug({
        requestId: request.id,
        method: request.method,
        route: request.routeOptions.url,
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime),
      });
    });
  }
  app.addHook('onRoute', refuseUndeclared);
  for (const endpoint of endpoints) addEndpoint(app, endpoint, parts);
  addOpenRoutes(app, services, endpoints);
  refuseOtherMethods(app, endpoints);
  return app;
}
