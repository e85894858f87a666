import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { readBearer } from '../access/bearer.ts';
import { type InputProblem, refuseInput } from '../errors.ts';
import type { Origin } from '../origin.ts';
import { Secret } from '../secret.ts';
import type { AnyEndpoint } from './endpoint.ts';
import { checkQueryNames } from './request-rules.ts';

const detailsMax = 20;

/** Parses one part of the input; what is wrong with it is added to `problems`. */
function parsePart(part: string, schema: z.ZodType | undefined, value: unknown, problems: InputProblem[]): unknown {
  if (!schema) return undefined;
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  for (const { path, message } of parsed.error.issues) {
    problems.push({ field: [part, ...path.map(String)].join('.'), message });
  }
  return undefined;
}

/** Where the request came from. The address is looked at only when somebody asks. */
class RequestOrigin implements Origin {
  readonly requestId: string;
  readonly #request: FastifyRequest;

  constructor(request: FastifyRequest) {
    this.requestId = request.id;
    this.#request = request;
  }

  get network(): string {
    return this.#request.ip;
  }
}

/**
 * What turns an admitted request into a handler's input, all problems of all parts told at once. Throws `invalidInput`.
 */
export function inputReader(endpoint: AnyEndpoint): (request: FastifyRequest) => unknown {
  const { policy, params, query, headers, body } = endpoint;
  return (request) => {
    const given = request.query as Readonly<Record<string, unknown>>;
    checkQueryNames(given);
    const problems: InputProblem[] = [];
    const input = {
      caller: policy.who === 'holder' ? new Secret(readBearer(request.headers.authorization, [])) : request.caller,
      params: parsePart('params', params, request.params, problems),
      query: parsePart('query', query, given, problems),
      headers: parsePart('headers', headers, request.headers, problems),
      body: parsePart('body', body, request.body, problems),
      origin: new RequestOrigin(request),
    };
    if (problems.length > 0) throw refuseInput(...problems.slice(0, detailsMax));
    return input;
  };
}
