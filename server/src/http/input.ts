import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { readBearer } from '../access/bearer.ts';
import { type InputProblem, refuseInput } from '../errors.ts';
import type { Origin } from '../origin.ts';
import { Secret } from '../secret.ts';
import type { AnyEndpoint } from './endpoint.ts';
import { checkQueryNames } from './request-rules.ts';

const detailsMax = 20;

/** A request that found its endpoint. */
export type EndpointRequest = FastifyRequest<{
  Params: Readonly<Record<string, string>>;
  Querystring: Readonly<Record<string, unknown>>;
}>;

/** Parses the parts of one input, and remembers what is wrong with any of them. */
class InputParser {
  readonly problems: InputProblem[] = [];

  parse(part: string, schema: z.ZodType | undefined, value: unknown): unknown {
    if (!schema) return undefined;
    const parsed = schema.safeParse(value);
    if (parsed.success) return parsed.data;
    for (const { path, message } of parsed.error.issues) {
      this.problems.push({ field: [part, ...path.map(String)].join('.'), message });
    }
    return undefined;
  }
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
export function inputReader(endpoint: AnyEndpoint): (request: EndpointRequest) => never {
  const { policy, params, query, headers, body } = endpoint;
  return (request) => {
    checkQueryNames(request.query);
    const parser = new InputParser();
    const input = {
      caller: policy.who === 'holder' ? new Secret(readBearer(request.headers.authorization, [])) : request.caller,
      params: parser.parse('params', params, request.params),
      query: parser.parse('query', query, request.query),
      headers: parser.parse('headers', headers, request.headers),
      body: parser.parse('body', body, request.body),
      origin: new RequestOrigin(request),
    };
    if (parser.problems.length > 0) throw refuseInput(...parser.problems.slice(0, detailsMax));
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its type is known to the declaration alone
    return input as never;
  };
}
