import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { networkOf } from '../../limits/limits.ts';
import type { AllServices } from '../../services.ts';
import { bodyBytesOf, readBytes } from '../body/body.ts';
import type { BodyBudgets } from '../body/body-budget.ts';
import { spending } from '../budgets.ts';
import { clientAddress } from '../client-address.ts';
import { type AnyEndpoint, addressOf, PassedAnswer, StreamedList, WithHeaders } from '../endpoint.ts';
import { type EndpointRequest, inputReader, rawInputOf } from '../input.ts';
import { answerForms, StreamedText } from '../media.ts';
import { bodyBytesMax, readJsonBody } from '../request-rules.ts';
import { WrittenAnswer } from '../written-answer.ts';
import { type Authenticators, admission, countBadCredential, prover } from './admission.ts';
import { answerText } from './answer-text.ts';
import { listWriter } from './list-answers.ts';
import { scopeOf } from './request-scope.ts';
import type { Streams } from './streams.ts';

/** Writers of an endpoint's streamed responses. */
interface EndpointStreams {
  write(answer: StreamedText, request: EndpointRequest, reply: FastifyReply): unknown;
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
function answerWriter(endpoint: AnyEndpoint, { log, services, streams }: WriterParts) {
  const { response, method, path } = endpoint;
  const statuses = Object.keys(response).map(Number);
  const status = statuses.find((declared) => declared !== nothing) ?? nothing;
  const schema = response[status];
  if (!schema) throw new Error(`${method} ${path} declares no response`);
  const { mediaTypes, json } = answerForms(schema);
  const mayBeNothing = statuses.includes(nothing);

  const jsonText = json && answerText(json);
  const streamedList = listWriter(endpoint, json, { limits: services.limits, log });

  function passed({ status: code, body }: PassedAnswer, reply: FastifyReply) {
    reply.code(code);
    return body.length === 0 ? reply.send() : reply.type(jsonType).send(body);
  }

  /** Returns the body that the framework sends unchanged. */
  function bodyOf(answer: unknown, reply: FastifyReply): unknown {
    const isMedia = answer instanceof Uint8Array || !jsonText;
    const type = isMedia ? mediaTypes[0] : jsonType;
    if (type !== undefined) reply.type(type);
    return isMedia ? answer : jsonText(answer, reply);
  }

  function written(answer: unknown, request: FastifyRequest, reply: FastifyReply): unknown {
    const isNothing = mayBeNothing && answer === undefined;
    const code = isNothing ? nothing : status;
    if (code !== 200) reply.code(code);
    if (answer instanceof StreamedList) return streamedList(answer, request, reply);
    if (!(answer instanceof WithHeaders)) return isNothing ? reply.send() : bodyOf(answer, reply);
    reply.headers(answer.headers);
    return answer.body === undefined ? reply.send() : bodyOf(answer.body, reply);
  }

  /** Sends a response that was written elsewhere, unchanged. */
  function writtenElsewhere({ status: code, headers, body }: WrittenAnswer, reply: FastifyReply) {
    reply.code(code).headers(headers).serializer(String);
    return body === '' ? reply.send() : reply.send(body);
  }

  function write(answer: unknown, request: EndpointRequest, reply: FastifyReply): unknown {
    if (answer instanceof WrittenAnswer) return writtenElsewhere(answer, reply);
    if (answer instanceof StreamedText) return streams.write(answer, request, reply);
    return answer instanceof PassedAnswer ? passed(answer, reply) : written(answer, request, reply);
  }
  return write;
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
  const write = answerWriter(endpoint, {
    services,
    log,
    streams: {
      write: (answer, request, reply) =>
        streams.write(answer, { request, reply, stillAdmitted: async () => void (await prove(request)) }),
    },
  });
  const admit = admission(endpoint, prove, services);
  const reserve = bodyReservation(budgets);
  const carry = spending(endpoint, services);

  async function answerOf(request: EndpointRequest): Promise<unknown> {
    // The operation is named in the body, which may have taken time to arrive. Rule: AUTH-27.
    if (endpoint.isMcp && performance.now() - request.startedMs > promptMsMax) await admit(request);
    const input = readInput(rawInputOf(request));
    return carry ? carry(request.caller, () => endpoint.handle(services, input)) : endpoint.handle(services, input);
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
        const answer = scope ? await scope.during(() => answerOf(request)) : await answerOf(request);
        return write(answer, request, reply);
      } catch (error) {
        countBadCredential(services.limits, error, clientAddress(request));
        throw error;
      }
    },
  });
}
