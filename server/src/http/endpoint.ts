import type { z } from 'zod';
import type { Policy } from '../access/policy.ts';
import type { Principal, ServicePrincipal, SessionPrincipal } from '../access/principal.ts';
import type { Write } from '../access/reauthorization.ts';
import type { ServiceScope } from '../access/scoped-tokens.ts';
import type { Origin } from '../base/origin.ts';
import type { Secret } from '../base/secret.ts';
import type { Tx } from '../db/database.ts';
import type { Act } from '../limits/limits.ts';
import type { AllServices, Services } from '../services.ts';
import type { IfWriting, ServicesOf } from './writing.ts';
import type { WrittenResponse } from './written-response.ts';

/** The methods that endpoints have. */
type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/**
 * The success response: its status, and the schema that its body is serialized by. An undeclared field cannot leave. An
 * operation that may have no body declares 204 as well.
 */
type Response = Readonly<Record<number, z.ZodType>>;

/** Type of a parsed part of the input; `undefined` for a part that isn't declared. */
type Parsed<S> = [NonNullable<S>] extends [z.ZodType]
  ? [S] extends [undefined]
    ? undefined
    : z.output<NonNullable<S>>
  : undefined;

/** Type of the handler's caller, by the endpoint's policy. */
type CallerOf<P extends Policy> = P extends { readonly who: 'anyone' }
  ? null
  : P extends { readonly who: 'holder' }
    ? Secret
    : P extends { readonly who: 'service' }
      ? ServicePrincipal
      : P extends { readonly sessionOnly: true }
        ? SessionPrincipal
        : P extends { readonly orService: ServiceScope }
          ? Principal | ServicePrincipal
          : Principal;

/** How an operation takes an `Idempotency-Key`. */
interface Idempotency {
  /** Members of the response that are neither stored nor repeated, as paths with dots. */
  readonly secrets: readonly string[];
}

interface Shape {
  readonly method: Method;
  readonly policy: Policy;
  readonly forwardsCredential?: true | undefined;
  /**
   * The operation takes an `Idempotency-Key`: its handler passes its response to `remember` in the transaction of its
   * change. Rule: FIT-135.
   */
  readonly idempotency?: Idempotency | undefined;
  readonly params?: z.ZodType | undefined;
  readonly query?: z.ZodType | undefined;
  readonly headers?: z.ZodType | undefined;
  readonly body?: z.ZodType | undefined;
  readonly response: Response;
}

/**
 * Parts of the caller's request that are forwarded to a backend that takes our credentials. Rules: TEAM-4 to TEAM-6.
 */
export interface Forwarded {
  /** Without a display prefix. */
  readonly credential: Secret;
  readonly requestId: string;
  /** The caller's `client-name`, or `latchkey` where that is absent or not 1 to 64 of `[A-Za-z0-9._-]`. */
  readonly clientName: string;
}

/** Input of a handler: the caller, the parsed input and the origin of the request. Never a raw request. */
interface HandlerInput<S extends Shape> {
  readonly caller: CallerOf<S['policy']>;
  readonly params: Parsed<S['params']>;
  readonly query: Parsed<S['query']>;
  readonly headers: Parsed<S['headers']>;
  readonly body: Parsed<S['body']>;
  readonly origin: Origin;
  /** Writes for the caller, whom the policy admits again in the transaction. There where a caller's request may change something. */
  readonly write: IfWriting<S['method'], S['policy'], Write>;
  /** Admits the caller again and returns the caller as of now, for what only reads for the sake of a body. There with `write`. */
  readonly reauthorize: IfWriting<S['method'], S['policy'], () => Promise<Principal>>;
  /**
   * Stores the response for a request with the same key, without its secrets, and returns it. There where the declaration
   * says `idempotency`.
   */
  readonly remember: [NonNullable<S['idempotency']>] extends [never]
    ? undefined
    : <B extends Body<S>>(tx: Tx, response: B) => Promise<B>;
  /** There where the declaration says `forwardsCredential`. */
  readonly forwarded: [NonNullable<S['forwardsCredential']>] extends [never] ? undefined : Forwarded;
}

type Body<S extends Shape> = z.input<S['response'][keyof S['response']]>;
/** An array may also come in batches. */
type ResponseValue<B> = B | (B extends readonly (infer T)[] ? StreamedList<T> : never);

/** Declaration of the tool of an operation. Hints that are absent follow from the method. Rules: MCP-5, MCP-11. */
export interface ToolDeclaration {
  /** `<verb>_<noun>`. */
  readonly name: `${string}_${string}` | 'whoami';
  /** Title for users; a few words at most. */
  readonly title: string;
  /** Instructions for the model: when to use it and what it needs; default: the summary. */
  readonly description?: string;
  /** Defaults of the query. */
  readonly query?: Readonly<Record<string, string>>;
  /** Parameters of the query that hold several values with commas between, and what those are: as arguments they are lists. */
  readonly lists?: Readonly<Record<string, string>>;
  /** The one of several forms of the response that goes with that query. */
  readonly response?: z.ZodObject;
  readonly readOnly?: boolean;
  readonly destructive?: boolean;
  readonly idempotent?: boolean;
}

interface Description {
  /** Below `/api/v1`, or below the root where `root` is set; parameters as `:name`. */
  readonly path: `/${string}`;
  /** True for the few addresses outside `/api/v1`. */
  readonly root?: true;
  /** One sentence for the documentation. */
  readonly summary: string;
  /** Name of the operation for clients, where neither its tool nor the name of its constant is one. Rule: FIT-120. */
  readonly operationId?: string;
  /**
   * A backend may serve the operation with the caller's own credential: the handler gets `forwarded`, and may return a
   * `PassedResponse` of any 2xx status.
   */
  readonly forwardsCredential?: true | undefined;
  /** Response headers that are part of the contract, with descriptions. */
  readonly responseHeaders?: Readonly<Record<string, string>>;
  /** The operation as a tool of agents: the same checks, the same input, the same response. Rules: MCP-5, MCP-9. */
  readonly tool?: ToolDeclaration;
  /**
   * An endpoint of the Model Context Protocol: it returns `WrittenResponse`s, and errors in the form of JSON-RPC. Rule:
   * ERR-5.
   */
  readonly isMcp?: true;
  /**
   * An OAuth endpoint: it takes a form as well as JSON, and returns errors in the form of RFC 6749. Rules: ERR-5,
   * SERVICE-11.
   */
  readonly isOAuth?: true;
  /** Statuses of its errors besides those that follow from its policy and its input. Rule: FIT-123. */
  readonly errors?: readonly (400 | 401 | 404 | 409 | 410 | 413 | 415 | 429 | 502)[];
  /** Statuses whose error has the form `{ errorMessage }`, where a rule requires it. Rule: ERR-4. */
  readonly errorMessages?: readonly number[];
  /**
   * Cost of a call to its caller's budget; default: a write where the method changes something, else nothing. Signing
   * out and revoking are free, so that a thief who used the budget up cannot prevent them. Rules: HTTP-35, HTTP-36.
   */
  readonly costs?: 'read' | 'nothing';
  /**
   * What bounds how often a call that costs no budget of its caller's may write: an act that is counted, that it ends or
   * redeems what there is, that it happens once, that it stores nothing, or who the callers are. Rule: HTTP-37.
   */
  readonly boundedBy?: Act | 'ends what there is' | 'redeems a link' | 'once' | 'stores nothing' | 'trusted service';
  /** The heading in the documentation. */
  readonly tag: string;
  /**
   * Rejects callers whatever their input: because of the state of the system, or of the bearer value of a `holder`.
   * Runs after admission, before any input is read. Rule: HTTP-2.
   */
  precondition?(services: Services, held: Secret | null): Promise<void>;
}

/** An endpoint that forwards a credential may also pass on the response. */
type PassedFor<S extends Shape> = [NonNullable<S['forwardsCredential']>] extends [never] ? never : PassedResponse;

type Spec<S extends Shape> = Description &
  S & {
    /** Address of the new resource below `/api/v1`, for the header `Location` of a 201. Rule: FIT-139. */
    location?(response: Body<S>): `/${string}`;
    handle(
      services: ServicesOf<S['policy']>,
      input: HandlerInput<S>,
    ): Promise<
      ResponseValue<Body<S>> | RecordWithStreamedList<unknown> | WithHeaders<Body<S>> | PassedFor<S> | WrittenResponse
    >;
  };

/** An endpoint without its types, for the router, the documentation and the tests. */
export interface AnyEndpoint extends Description, Shape {
  location?(response: never): `/${string}`;
  handle(services: AllServices, input: never): Promise<unknown>;
}

/** A body together with response headers that are part of the contract. */
export class WithHeaders<B> {
  readonly body: B;
  readonly headers: Readonly<Record<string, string>>;

  constructor(body: B, headers: Readonly<Record<string, string>>) {
    this.body = body;
    this.headers = headers;
  }
}

/**
 * The success response of a backend, passed on with its status and its bytes: JSON, or nothing at all. Only endpoints
 * that declare `forwardsCredential` may return it.
 */
export class PassedResponse {
  readonly status: number;
  readonly body: Buffer;

  constructor(status: number, body: Buffer) {
    this.status = status;
    this.body = body;
  }
}

/** An array that is too long to be held whole: its items in batches, none of them empty, sent as they come. */
export class StreamedList<T> {
  readonly rows: AsyncIterable<readonly T[]>;

  constructor(rows: AsyncIterable<readonly T[]>) {
    this.rows = rows;
  }

  /** The same list with each item made into another. */
  static async *map<R, T>(
    rowBatches: AsyncIterable<readonly R[]>,
    toItem: (row: R) => T,
  ): AsyncGenerator<readonly T[]> {
    for await (const rows of rowBatches) yield rows.map(toItem);
  }
}

/**
 * A record that ends with an array which is too long to be held whole: the array's items in batches, sent as they come.
 * The array is the last field of the declared schema.
 */
export class RecordWithStreamedList<T> extends StreamedList<T> {
  readonly field: string;
  /** With an empty array in the place of the long one. */
  readonly record: Readonly<Record<string, unknown>>;

  constructor(field: string, record: Readonly<Record<string, unknown>>, rows: AsyncIterable<readonly T[]>) {
    super(rows);
    this.field = field;
    this.record = record;
  }
}

/**
 * Declares one operation: address, policy, input, response and handler. The router, the OpenAPI document, the access
 * matrix and the generated table all read this one declaration.
 */
export function endpoint<
  const M extends Method,
  const P extends Policy,
  R extends Response,
  Params extends z.ZodType | undefined = undefined,
  Query extends z.ZodType | undefined = undefined,
  Headers extends z.ZodType | undefined = undefined,
  Input extends z.ZodType | undefined = undefined,
  Forwards extends true | undefined = undefined,
  Once extends Idempotency | undefined = undefined,
>(
  spec: Spec<{
    readonly method: M;
    readonly policy: P;
    readonly forwardsCredential?: Forwards;
    readonly idempotency?: Once;
    readonly params?: Params;
    readonly query?: Query;
    readonly headers?: Headers;
    readonly body?: Input;
    readonly response: R;
  }>,
): AnyEndpoint {
  return spec;
}

/** A family of operations that differ in one thing, declared by one function. */
export function endpoints<const T>(cases: readonly T[], declare: (one: T) => AnyEndpoint): readonly AnyEndpoint[] {
  return cases.map(declare);
}

/** Path of the API below the root. */
export const apiPrefix = '/api/v1';

/** The whole address of an endpoint, parameters as `:name`. */
export function addressOf({ root, path }: Pick<AnyEndpoint, 'root' | 'path'>): string {
  return root ? path : apiPrefix + path;
}
