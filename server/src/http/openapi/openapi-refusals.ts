import type { Policy } from '../../access/policy.ts';
import { apiErrors, type ErrorDefinition } from '../../base/api-errors.ts';
import { costOf } from '../budgets.ts';
import type { AnyEndpoint } from '../endpoint.ts';

type Json = Record<string, unknown>;

type ApiErrorName = keyof typeof apiErrors;

interface Refusal {
  readonly name: string;
  readonly description: string;
  /** The error that the example shows. */
  readonly example: ApiErrorName;
  readonly headers?: readonly string[];
}

/** Meaning of an error of each status. Others are described by `default`. */
const refusals: Readonly<Record<number, Refusal>> = {
  400: {
    name: 'BadRequest',
    description: 'The request is not valid; details name the fields',
    example: 'invalidInput',
  },
  401: {
    name: 'Unauthorized',
    description: 'The credential is missing, unknown, expired or revoked',
    example: 'tokenInvalid',
    headers: ['WWW-Authenticate'],
  },
  403: {
    name: 'Forbidden',
    description: 'The credential is valid, and does not suffice',
    example: 'administratorRequired',
  },
  404: { name: 'NotFound', description: 'The resource does not exist', example: 'notFound' },
  406: { name: 'NotAcceptable', description: 'Accept does not name application/json', example: 'notFound' },
  409: { name: 'Conflict', description: 'The present state does not allow it', example: 'emailTaken' },
  410: { name: 'Gone', description: 'The resource existed, and is no longer there', example: 'linkGone' },
  413: { name: 'TooLarge', description: 'The body is too large', example: 'bodyTooLarge' },
  415: {
    name: 'UnsupportedMediaType',
    description: 'The body has no type, or another one than these',
    example: 'bodyNotJson',
  },
  429: {
    name: 'TooManyRequests',
    description: 'A limit is reached; Retry-After holds the seconds until the next try',
    example: 'tooManyRequests',
    headers: ['Retry-After'],
  },
  502: { name: 'BadGateway', description: 'Another server failed', example: 'testMailFailed' },
};

/** Values for the texts of the examples. */
const parameters: Readonly<Record<string, string>> = {
  summary: 'query.page: must be a whole number',
  limit: '1048576',
  seconds: '30',
  said: '550 5.7.1 Relaying denied',
};

/** Headers of responses. */
export const headerComponents: Json = {
  'Retry-After': { description: 'Seconds until the next try', schema: { type: 'integer', minimum: 0 } },
  'WWW-Authenticate': { description: 'The credential that is taken (RFC 6750, RFC 7617)', schema: { type: 'string' } },
  'X-Request-Id': { description: 'The id of the request in the log', schema: { type: 'string' } },
};

/** Bounds of calls that are no counted acts. */
const uncounted = ['ends what there is', 'redeems a link', 'once', 'stores nothing', 'trusted service'];

function mayBeForbidden(policy: Policy): boolean {
  if (policy.who === 'anyone' || policy.who === 'holder') return false;
  return policy.who !== 'member' || !('anyScope' in policy);
}

function isLimited(endpoint: AnyEndpoint): boolean {
  const { policy, boundedBy, isMcp } = endpoint;
  if (boundedBy !== undefined) return !uncounted.includes(boundedBy);
  return isMcp === true || (!['anyone', 'holder', 'service'].includes(policy.who) && costOf(endpoint) !== null);
}

/** Returns the statuses with which an operation refuses: those of its policy and its input, and those that it declares. */
function statusesOf(endpoint: AnyEndpoint): number[] {
  const { policy, params, query, headers, body, errors = [], isMcp, isOAuth } = endpoint;
  const given: readonly (readonly [number, unknown])[] = [
    [400, params ?? query ?? headers ?? body],
    [401, policy.who !== 'anyone' || policy.writesBy === 'signInProof' || isOAuth],
    [403, mayBeForbidden(policy) || isMcp],
    [404, endpoint.path.includes('/:')],
    [406, isMcp],
    [413, body],
    [415, body],
    [429, isLimited(endpoint)],
  ];
  const own = given.filter(([, applies]) => Boolean(applies)).map(([status]) => status);
  return [...new Set([...own, ...errors])].sort((a, b) => a - b);
}

function headersOf({ headers = [] }: Refusal): Json {
  const all = [...headers, 'X-Request-Id'];
  return Object.fromEntries(all.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function exampleOf(form: ErrorForm, { example }: Refusal): Json {
  const { code, text, status }: ErrorDefinition = apiErrors[example];
  const message = text.replace(/\{(\w+)\}/g, (_, name: string) => parameters[name] ?? '');
  if (form === 'OAuthError')
    return { error: status === 401 ? 'invalid_client' : 'invalid_request', error_description: message };
  if (form === 'RpcError') return { jsonrpc: '2.0', id: null, error: { code: -32_000, message } };
  return { message, error: { code, message, requestId: '8f14e45fceea167a5a36dedd4bea2543' } };
}

/** Form of the errors of an endpoint: the name of its schema. */
export type ErrorForm = 'ApiError' | 'OAuthError' | 'RpcError';

function nameOf(form: ErrorForm, { name }: Refusal): string {
  return form === 'ApiError' ? name : `${form.replace('Error', '')}${name}`;
}

function componentOf(form: ErrorForm, refusal: Refusal): Json {
  const schema = { $ref: `#/components/schemas/${form}` };
  const content = { 'application/json': { schema, example: exampleOf(form, refusal) } };
  return { description: refusal.description, headers: headersOf(refusal), content };
}

/** Responses with which operations refuse, and what they refer to. */
export class RefusalResponses {
  readonly #named = new Map<string, Json>();

  /** Returns the refusals of an operation by status. Rule: FIT-123. */
  of(endpoint: AnyEndpoint, form: ErrorForm): Json {
    const all = statusesOf(endpoint).map((status) => {
      const refusal = refusals[status];
      if (!refusal) throw new Error(`${endpoint.method} ${endpoint.path} declares the unknown error ${status}`);
      const name = nameOf(form, refusal);
      this.#named.set(name, componentOf(form, refusal));
      return [String(status), { $ref: `#/components/responses/${name}` }] as const;
    });
    return Object.fromEntries<unknown>(all);
  }

  /** Returns those referred to so far, by name. */
  named(): Json {
    return Object.fromEntries(this.#named);
  }
}
