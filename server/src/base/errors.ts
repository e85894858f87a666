import { apiErrors, type ErrorDefinition } from './api-errors.ts';

/** Returns OAuth's code for an error. Rule: ERR-5. */
export function oauthError({ errorName: error, status }: ApiError): string {
  const known: ErrorDefinition = apiErrors[error];
  if (known.oauth !== undefined) return known.oauth;
  if (status === 401) return 'invalid_client';
  if (status === 403) return 'unauthorized_client';
  if (status === 429 || status === 503) return 'temporarily_unavailable';
  return status < 500 ? 'invalid_request' : 'server_error';
}

/** Returns whether an error has the form `{ errorMessage }`. Rule: ERR-4. */
export function hasErrorMessage(error: ApiErrorName): boolean {
  const known: ErrorDefinition = apiErrors[error];
  return known.spelling === 'errorMessage';
}

/** Name of an error, used inside the code only. */
export type ApiErrorName = keyof typeof apiErrors;

/** One thing wrong with the input: `field` is a path such as `body.email`. */
export interface InputProblem {
  readonly field: string;
  readonly message: string;
}

interface ApiErrorExtras {
  readonly params?: Readonly<Record<string, string | number>>;
  readonly details?: readonly InputProblem[];
  readonly headers?: Readonly<Record<string, string>>;
  /** Further fields of the body. */
  readonly more?: Readonly<Record<string, unknown>>;
  /** Fault of another system, in our own words: logged and counted, never returned to the caller. */
  readonly cause?: string;
}

/** Thrown to reject a request. Contains only what the caller may see. */
export class ApiError extends Error {
  readonly errorName: ApiErrorName;
  readonly status: number;
  readonly code: string;
  readonly details: readonly InputProblem[] | undefined;
  /** Further fields of the body. */
  readonly more: Readonly<Record<string, unknown>>;
  /** Response headers that belong to this error, such as `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(error: ApiErrorName, extras: ApiErrorExtras = {}) {
    const { status, code, text } = apiErrors[error];
    const params = extras.params ?? {};
    const message = text.replace(/\{(\w+)\}/g, (_, name: string) => String(params[name] ?? '')).trim();
    super(message, extras.cause === undefined ? {} : { cause: extras.cause });
    this.name = 'ApiError';
    this.errorName = error;
    this.status = status;
    this.code = code;
    this.details = extras.details;
    this.more = extras.more ?? {};
    this.headers = extras.headers ?? {};
  }
}

const shownMax = 100;

function cut(text: string): string {
  return text.length > shownMax ? `${text.slice(0, shownMax)}…` : text;
}

/**
 * Returns the error for input that breaks a rule of the schema; the text names the first problem and counts the others.
 * Rule: ERR-3.
 */
export function refuseInput(...problems: readonly InputProblem[]): ApiError {
  // Names from the request are quoted, with a limited length.
  const details = problems.map(({ field, message }) => ({ field: cut(field), message }));
  const [first, ...more] = details;
  const others = more.length > 0 ? ` (and ${more.length} more)` : '';
  const summary = first ? `${first.field}: ${first.message}${others}` : '';
  return new ApiError('invalidInput', { params: { summary }, details });
}

/**
 * The 429 of a caller who is over a limit that is the caller's own, with `Retry-After` and the `RateLimit-*` fields. What
 * all callers together have used up is `overloaded`. Rule: ERR-24.
 * @param limit how much the caller may have or do
 * @param seconds until it is worth trying again
 */
export function refuseTooMany(limit: number, seconds: number): ApiError {
  return new ApiError('tooManyRequests', { params: { seconds }, headers: limitHeaders(limit, seconds) });
}

/** Returns the `RateLimit-*` fields of a budget, in seconds. */
export function budgetHeaders({
  limit,
  remaining,
  seconds,
}: {
  readonly limit: number;
  readonly remaining: number;
  readonly seconds: number;
}): Record<string, string> {
  return {
    'ratelimit-limit': String(limit),
    'ratelimit-remaining': String(remaining),
    'ratelimit-reset': String(seconds),
  };
}

/** Returns the headers of a limit that is reached: `Retry-After` and the `RateLimit-*` fields, in seconds. */
export function limitHeaders(limit: number, seconds: number): Record<string, string> {
  return { 'retry-after': String(seconds), ...budgetHeaders({ limit, remaining: 0, seconds }) };
}

/** Returns the error for a token that lacks scopes, with the challenge of RFC 6750, section 3. */
export function refuseScope(required: readonly string[]): ApiError {
  const scopes = required.join(' ');
  return new ApiError('scopeMissing', {
    params: { scopes },
    headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scopes}"` },
  });
}

/**
 * A mistake of the operator that stops start-up: wrong configuration, unreadable keys, a store in use. The message is
 * one line that says what is wrong and what to do next, and never contains a secret.
 */
export class StartupError extends Error {
  override readonly name = 'StartupError';
  /** The variable that is wrong; `null` where it is something else than the configuration. */
  readonly variable: string | null;

  constructor(message: string, { variable = null, ...options }: ErrorOptions & { variable?: string | null } = {}) {
    super(message, options);
    this.variable = variable;
  }
}
