import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { readBearer } from '../access/bearer.ts';
import type { Principal, ServicePrincipal } from '../access/principal.ts';
import { type InputProblem, refuseInput } from '../base/errors.ts';
import type { Origin } from '../base/origin.ts';
import { Secret } from '../base/secret.ts';
import type { AllServices } from '../services.ts';
import { closestName } from '../text/closest.ts';
import { clientAddress } from './client-address.ts';
import type { AnyEndpoint, Forwarded } from './endpoint.ts';
import { checkQuery } from './request-rules.ts';
import { isStrict } from './schemas.ts';
import { writerOf } from './writing.ts';

const parts = ['params', 'query', 'headers', 'body'] as const;
type Part = (typeof parts)[number];

/** A request that found its endpoint. */
export type EndpointRequest = FastifyRequest<{
  Params: Readonly<Record<string, string>>;
  Querystring: Readonly<Record<string, unknown>>;
}>;

/** Origin of a request. The address is computed only when it is needed. */
class RequestOrigin implements Origin {
  readonly requestId: string;
  readonly #request: FastifyRequest;

  constructor(request: FastifyRequest) {
    this.requestId = request.id;
    this.#request = request;
  }

  get network(): string {
    return clientAddress(this.#request);
  }

  hasLeft(): boolean {
    return this.#request.raw.socket.destroyed;
  }
}

const units: Readonly<Record<string, string>> = { string: ' characters', array: ' items' };

/** Unknown names that are reported, at most. */
const detailsMax = 20;
const nameMax = 100;

/** The names that were probably meant by unknown ones, one a line; an empty line: none is close. Rule: CRED-2. */
function hintsOf(keys: readonly string[], { inst }: z.core.$ZodRawIssue): string {
  const known = inst instanceof z.ZodObject ? Object.keys(inst.shape) : [];
  return keys
    .slice(0, detailsMax)
    .map((key) => closestName(key, known) ?? '')
    .join('\n');
}

/** Message that a name is unknown, with the one that was probably meant; `kind` is the kind of name. */
export function unknownName(kind: string, meant: string | null | undefined): string {
  return `is not a known ${kind}${meant ? `: did you mean ${meant}?` : ''}`;
}

/** Messages for values that break a schema, where the schema itself has none. */
export const wording: z.core.$ZodErrorMap = (issue) => {
  if (issue.input === undefined) return 'is required';
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${/^[aeio]/.test(issue.expected) ? 'an' : 'a'} ${issue.expected}`;
    case 'invalid_value':
      return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.join(', ')}`;
    case 'too_small':
      if (issue.minimum === 1 && issue.origin in units) return 'must not be empty';
      return `must ${issue.origin in units ? 'have' : 'be'} at least ${issue.minimum}${units[issue.origin] ?? ''}`;
    case 'too_big':
      return `must ${issue.origin in units ? 'have' : 'be'} at most ${issue.maximum}${units[issue.origin] ?? ''}`;
    case 'unrecognized_keys':
      return hintsOf(issue.keys, issue);
    default:
      return 'is not valid';
  }
};

/** Returns the problems of one part of the input. */
export function problemsOf(part: string, { issues }: z.ZodError): InputProblem[] {
  const found = issues.flatMap((issue) => {
    const { code, path, message } = issue;
    const fieldOf = (...names: string[]) => [part, ...path.map(String), ...names].join('.');
    if (issue.code !== 'unrecognized_keys') return { code, field: fieldOf(), message };
    const meant = message.split('\n');
    return issue.keys.slice(0, detailsMax).map((key, place) => {
      const known = unknownName(part === 'query' ? 'parameter' : 'key', meant[place]);
      return { code, field: fieldOf(key.slice(0, nameMax)), message: known };
    });
  });
  const ofWrongType = new Set(found.flatMap(({ code, field }) => (code === 'invalid_type' ? [field] : [])));
  // Anything with a length is measured, even where another type was expected: that says nothing.
  return found
    .filter(({ code, field }) => code === 'invalid_type' || !ofWrongType.has(field))
    .map(({ field, message }) => ({ field, message }));
}

function authorizationOf({ authorization }: RawInput['headers']): string | undefined {
  return typeof authorization === 'string' ? authorization : undefined;
}

const clientNameForm = /^[A-Za-z0-9._-]{1,64}$/;
const ownName = 'latchkey';

/** Raw input of an operation, of a request or of a tool call. */
export interface RawInput {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: unknown;
  readonly caller: Principal | ServicePrincipal | null;
  readonly origin: Origin;
}

/** Returns the raw input of a request. The parameter `_` is dropped: clients send it to bypass caches. Rule: CRED-3. */
export function rawInputOf(request: EndpointRequest): RawInput {
  const { params, query: given, headers, body, caller } = request;
  const { _, ...query } = given;
  return { params, query, headers, body, caller, origin: new RequestOrigin(request) };
}

/**
 * Returns what is forwarded to a backend: exactly the credential that the caller was admitted with, and names in strict
 * forms.
 */
function forwardedOf({ headers, origin }: RawInput, displayPrefixes: readonly string[]): Forwarded {
  const given = headers['client-name'];
  return {
    credential: new Secret(readBearer(authorizationOf(headers), displayPrefixes)),
    requestId: origin.requestId,
    clientName: typeof given === 'string' && clientNameForm.test(given) ? given : ownName,
  };
}

function isAnyText(schema: z.core.$ZodType): boolean {
  const { innerType } = schema instanceof z.ZodOptional ? schema.def : {};
  return innerType instanceof z.ZodString && innerType.def.checks === undefined;
}

/** Returns whether a schema accepts everything: any body, or any headers, which are text anyway. */
function takesAnything(part: Part, schema: z.ZodType): boolean {
  if (schema instanceof z.ZodUnknown) return true;
  return part === 'headers' && schema instanceof z.ZodObject && Object.values(schema.shape).every(isAnyText);
}

/** The names of the members of a body. */
function namesIn(schema: z.ZodType | undefined): string[] {
  const given = schema instanceof z.ZodOptional ? schema.unwrap() : schema;
  return given instanceof z.ZodObject ? Object.keys(given.shape) : [];
}

/**
 * Finds parameters in the query of an operation that declares none, where they were meant to narrow it: of what has a strict
 * body, and of what removes. For one that belongs in the body the text says so. Rule: CRED-10.
 */
function strayParameters({ method, query, body }: AnyEndpoint): (given: object) => InputProblem[] {
  if (query !== undefined || !(method === 'DELETE' || isStrict(body))) return () => [];
  const known = namesIn(body);
  return (given) =>
    Object.keys(given)
      .slice(0, detailsMax)
      .map((name) => {
        const meant = closestName(name, known);
        const hint = meant === null ? null : `${meant} in the body`;
        return { field: `query.${name.slice(0, nameMax)}`, message: unknownName('parameter', hint) };
      });
}

/** A call without a key is not repeated. */
const rememberNothing = async (_: unknown, response: unknown) => response;

/** What reading the input of an operation takes of the services. */
type InputServices = Pick<AllServices, 'db' | 'reauthorize'> & {
  readonly config: Pick<AllServices['config'], 'displayPrefixes'>;
};

/** Reads the input of an operation. */
export type ReadInput = (raw: RawInput) => never;

/**
 * What turns what an admitted caller sends into a handler's input, all problems of all parts told at once. Throws `invalidInput`.
 */
export function inputReader(endpoint: AnyEndpoint, services: () => InputServices): ReadInput {
  const { policy, forwardsCredential, idempotency } = endpoint;
  const writer = writerOf(endpoint, services);
  const declared = parts.flatMap((part) => {
    const schema = endpoint[part];
    return schema ? [{ part, schema, isRead: !takesAnything(part, schema) }] : [];
  });
  const findStray = strayParameters(endpoint);

  function begin(raw: RawInput): Record<string, unknown> {
    const input: Record<string, unknown> = {
      caller: policy.who === 'holder' ? new Secret(readBearer(authorizationOf(raw.headers), [])) : raw.caller,
      origin: raw.origin,
    };
    if (writer) Object.assign(input, writer(raw));
    if (idempotency) input['remember'] = rememberNothing;
    if (forwardsCredential) input['forwarded'] = forwardedOf(raw, services().config.displayPrefixes);
    return input;
  }

  return (raw) => {
    checkQuery(raw.query);
    const input = begin(raw);
    const problems = findStray(raw.query);
    for (const { part, schema, isRead } of declared) {
      if (!isRead) {
        input[part] = raw[part];
        continue;
      }
      const parsed = schema.safeParse(raw[part], { error: wording });
      if (parsed.success) input[part] = parsed.data;
      else problems.push(...problemsOf(part, parsed.error));
    }
    if (problems.length > 0) throw refuseInput(...problems.slice(0, detailsMax));
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its type is known to the declaration alone
    return input as never;
  };
}
