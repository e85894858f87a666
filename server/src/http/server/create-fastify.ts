import { randomInt } from 'node:crypto';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { second } from '../../base/clock.ts';
import type { Config } from '../../config/config.ts';
import type { AllServices } from '../../services.ts';
import { expectContinue } from '../body/expected-continue.ts';
import { linkPageUrl } from '../pages/link-pages.ts';
import { givenRequestId, headerBytesRead, headersMax } from '../request-rules.ts';
import { withoutBasePath } from './base-path.ts';
import { respondToBrokenRequest } from './broken-requests.ts';
import { commonHeaders } from './common-headers.ts';
import { connectionDrain } from './drain.ts';
import { sendError } from './error-responses.ts';

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

/** Adds the headers of every response. */
export function setCommonHeaders(config: Config, request: FastifyRequest, reply: FastifyReply): void {
  reply.headers(commonHeaders(config, { requestId: request.id, origin: request.headers.origin }));
}

interface FastifyParts {
  readonly services: AllServices;
  readonly log: Logger;
  readonly isTrusted: (address: string) => boolean;
}

/** Creates the framework's part of the HTTP side, without any rule or route of ours. */
export function createFastify({ services, log, isTrusted }: FastifyParts): FastifyInstance {
  const newRequestId = requestIds();
  const firstSegments = new Set<string>();
  // A link of a mail may have `%23` in place of `#`. Rule: FIT-28.
  const isOurs = (segment: string) => firstSegments.has(segment.replace(/%23.*$/, ''));
  const app = Fastify({
    logger: false,
    genReqId: (message) => newRequestId(message),
    requestIdHeader: false,
    trustProxy: isTrusted,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: idleTimeoutMs,
    connectionTimeout: idleTimeoutMs,
    http: {
      headersTimeout: headersTimeoutMs,
      connectionsCheckingInterval: timeoutCheckMs,
      requireHostHeader: false,
      maxHeaderSize: headerBytesRead,
    },
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    exposeHeadRoutes: true,
    schemaController: { compilersFactory: { buildValidator: refuseSchemas } },
    routerOptions: { maxParamLength: paramLengthMax, ignoreTrailingSlash: true },
    rewriteUrl: ({ url = '/' }) => linkPageUrl(withoutBasePath(url, services.config.basePath, isOurs)),
    clientErrorHandler: respondToBrokenRequest(newRequestId, () => services.config),
    frameworkErrors: (error, request, reply) => {
      setCommonHeaders(services.config, request, reply);
      sendError({ log, metrics: services.metrics })(error, request, reply);
    },
  });
  app.addHook('onRoute', ({ url }) => void firstSegments.add(url.split('/')[1] ?? ''));
  // One more than allowed, so that the rule sees that there are too many.
  app.server.maxHeadersCount = headersMax + 1;
  // Asked for once while the peer is there, the address is known for as long as the socket is.
  app.server.on('connection', (socket) => socket.remoteAddress);
  const drain = connectionDrain(app.server);
  app.addHook('preClose', async () => drain());
  // Node would reject an unknown expectation; it may as well be ignored (RFC 9110, section 10.1.1).
  app.server.on('checkExpectation', (message, response) => app.server.emit('request', message, response));
  app.server.on('checkContinue', (message, response) => {
    expectContinue(message, response);
    app.server.emit('request', message, response);
  });
  return app;
}
