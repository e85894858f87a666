import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { budgetHeaders } from '../../base/errors.ts';
import { type BudgetLeft, networkOf } from '../../limits/limits.ts';
import type { AllServices } from '../../services.ts';
import { bodyBytesOf, readBytes } from '../body/body.ts';
import type { BodyBudgets } from '../body/body-budget.ts';
import { spending } from '../budgets.ts';
import { clientAddress } from '../client-address.ts';
import { type AnyEndpoint, addressOf, apiPrefix, PassedResponse, StreamedList, WithHeaders } from '../endpoint.ts';
import { idempotencyKeyOf, idempotent } from '../idempotency.ts';
import { type EndpointRequest, inputReader, rawInputOf } from '../input.ts';
import { responseForms, StreamedText } from '../media.ts';
import { bodyBytesMax, readJsonBody } from '../request-rules.ts';
import { WrittenResponse } from '../written-response.ts';
import { type Authenticators, admission, countBadCredential, prover } from './admission.ts';
import { listWriter } from './list-responses.ts';
import { scopeOf } from './request-scope.ts';
import { responseText } from './response-text.ts';
import type { Streams } from './streams.ts';

/** Writers of an endpoint's streamed responses. */
interface EndpointStreams {
  write(response: StreamedText, request: EndpointRequest, reply: FastifyReply): unknown;
}

interface WriterParts {
  readonly services: AllServices;
  readonly log: Logger;
  readonly streams: EndpointStreams;
}

interface RouteParts {
  readonly streams: Streams;
  readonly budgets: BodyBudgets;
  readonly services: AllServices;
  readonly authenticate: Authenticators;
  readonly log: Logger;
}

const nothing = 204;
const jsonType = 'application/json; charset=utf-8';
/** A body that took longer to come did not come with its headers. */
const promptMsMax = 20;

/** Returns the function that turns a handler's result into a response. */
function responseWriter(endpoint: AnyEndpoint, { log, services, streams }: WriterParts) {
  const { response, method, path, location } = endpoint;
  const statuses = Object.keys(response).map(Number);
  const status = statuses.find((declared) => declared !== nothing) ?? nothing;
  const schema = response[status];
  if (!schema) throw new Error(`${method} ${path} declares no response`);
  const { mediaTypes, json } = responseForms(schema);
  const mayBeNothing = statuses.includes(nothing);

  const jsonText = json && responseText(json);
  const streamedList = listWriter(endpoint, json, { limits: services.limits, log });

  function passed({ status: code, body }: PassedResponse, reply: FastifyReply) {
    reply.code(code);
    return body.length === 0 ? reply.send() : reply.type(jsonType).send(body);
  }

  /** Returns the body that the framework sends unchanged. */
  function bodyOf(response: unknown, reply: FastifyReply): unknown {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its type is known to the declaration alone
    if (location) reply.header('location', services.config.basePath + apiPrefix + location(response as never));
    const isMedia = response instanceof Uint8Array || !jsonText;
    const type = isMedia ? mediaTypes[0] : jsonType;
    if (type !== undefined) reply.type(type);
    return isMedia ? response : jsonText(response, reply);
  }

  function written(response: unknown, request: FastifyRequest, reply: FastifyReply): unknown {
    const isNothing = mayBeNothing && response === undefined;
    const code = isNothing ? nothing : status;
    if (code !== 200) reply.code(code);
    if (response instanceof StreamedList) return streamedList(response, request, reply);
    if (!(response instanceof WithHeaders)) return isNothing ? reply.send() : bodyOf(response, reply);
    reply.headers(response.headers);
    return response.body === undefined ? reply.send() : bodyOf(response.body, reply);
  }

  /** Sends a response that was written elsewhere, unchanged. */
  function writtenElsewhere({ status: code, headers, body }: WrittenResponse, reply: FastifyReply) {
    reply.code(code).headers(headers).serializer(String);
    return body === '' ? reply.send() : reply.send(body);
  }

  function write(response: unknown, request: EndpointRequest, reply: FastifyReply): unknown {
    if (response instanceof WrittenResponse) return writtenElsewhere(response, reply);
    if (response instanceof StreamedText) return streams.write(response, request, reply);
    return response instanceof PassedResponse ? passed(response, reply) : written(response, request, reply);
  }
  return write;
}

/** Returns what writes into a response how much of the budget is left. Rule: FIT-143. */
function showLeft(reply: FastifyReply) {
  return (left: BudgetLeft | null): void => {
    if (left) reply.headers(budgetHeaders(left));
  };
}

/** Reserves memory for a body that is about to be read, until the response is sent. */
function bodyReservation({ known, unknown }: BodyBudgets) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { caller, raw: message } = request;
    const body = { message, limit: bodyBytesOf(request) };
    const scope = () => scopeOf(request, reply);
    if (caller && 'userId' in caller) known.reserve(scope, { ...body, sender: caller.userId });
    else unknown.reserve(scope, { ...body, sender: networkOf(clientAddress(request)) });
  };
}

/** Adds the route of a declaration: admission, input, response. */
export function addEndpoint(app: FastifyInstance, endpoint: AnyEndpoint, parts: RouteParts): void {
  const { services, log, budgets, streams } = parts;
  if (!endpoint.policy) throw new Error(`${endpoint.method} ${endpoint.path} declares no policy`);
  const hasUnusualBody = endpoint.method === 'GET' && endpoint.body !== undefined;
  const readInput = inputReader(endpoint, () => services);
  const prove = prover(endpoint.policy, parts.authenticate);
  const write = responseWriter(endpoint, {
    services,
    log,
    streams: {
      write: (response, request, reply) =>
        streams.write(response, { request, reply, stillAdmitted: async () => void (await prove(request)) }),
    },
  });
  const admit = admission(endpoint, prove, services);
  const reserve = bodyReservation(budgets);
  const carry = spending(endpoint, services);
  const once = idempotent(endpoint, services);

  async function responseOf(request: EndpointRequest, reply: FastifyReply): Promise<unknown> {
    // The operation is named in the body, which may have taken time to arrive. Rule: AUTH-27.
    if (endpoint.isMcp && performance.now() - request.startedMs > promptMsMax) await admit(request);
    const input = readInput(rawInputOf(request));
    const key = once ? idempotencyKeyOf(request.headers) : null;
    const work = () => (once && key !== null ? once(key, input, request.body) : endpoint.handle(services, input));
    return carry ? carry(request.caller, work, showLeft(reply)) : work();
  }

  app.route<{ Params: EndpointRequest['params']; Querystring: EndpointRequest['query'] }>({
    method: endpoint.method,
    url: addressOf(endpoint),
    config: { endpoint },
    onRequest: admit,
    ...(endpoint.method === 'GET' ? {} : { preParsing: reserve }),
    ...(hasUnusualBody
      ? {
          // A body that the framework thinks nothing of.
          preValidation: async (request: FastifyRequest, reply: FastifyReply) => {
            await reserve(request, reply);
            const { raw } = request;
            request.body = readJsonBody(raw.headers['content-type'], await readBytes(raw, bodyBytesMax));
          },
        }
      : {}),
    handler: async (request, reply) => {
      const { scope } = request;
      try {
        const response = scope
          ? await scope.during(() => responseOf(request, reply))
          : await responseOf(request, reply);
        return write(response, request, reply);
      } catch (error) {
        countBadCredential(services.limits, error, clientAddress(request));
        throw error;
      }
    },
  });
}
