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

/** Says what is wrong with one part of the input. */
function problemsOf(part: string, error: z.ZodError): InputProblem[] {
  return error.issues.map(({ path, message }) => ({ field: [part, ...path.map(String)].join('.'), message }));
}

/**
 * What turns an admitted request into a handler's input, all problems of all parts told at once. Throws `invalidInput`.
 */
export function inputReader(endpoint: AnyEndpoint): (request: EndpointRequest) => never {
  const { policy } = endpoint;
  const declared = (['params', 'query', 'headers', 'body'] as const).flatMap((part) => {
    const schema = endpoint[part];
    return schema ? [{ part, schema }] : [];
  });

  return (request) => {
    checkQueryNames(request.query);
    const input: Record<string, unknown> = {
      caller: policy.who === 'holder' ? new Secret(readBearer(request.headers.authorization, [])) : request.caller,
      origin: new RequestOrigin(request),
    };
    let problems: InputProblem[] | undefined;
    for (const { part, schema } of declared) {
      const parsed = schema.safeParse(request[part]);
      if (parsed.success) input[part] = parsed.data;
      else problems = [...(problems ?? []), ...problemsOf(part, parsed.error)];
    }
    if (problems) throw refuseInput(...problems.slice(0, detailsMax));
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its type is known to the declaration alone
    return input as never;
  };
}
