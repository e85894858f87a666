import type { FastifyInstance } from 'fastify';
import { ApiError } from '../../base/errors.ts';
import { type AnyEndpoint, addressOf } from '../endpoint.ts';

const nothingAfterSlash = /^[^?]*\/(\/|\?|$)/;

/** A slash before another makes another address; the router takes what is between for a parameter that is empty. */
export function hasEmptyParam(url: string, params: unknown): boolean {
  if (!nothingAfterSlash.test(url)) return false;
  return typeof params === 'object' && params !== null && Object.values(params).includes('');
}

/**
 * Returns the addresses of DELETE that remove all where one with a further parameter removes one: with a slash at the end
 * they stand for a parameter that is empty, and are 404. Rule: FIT-40.
 */
export function widerRemovals(endpoints: readonly AnyEndpoint[]): ReadonlySet<string> {
  const removals = new Set(endpoints.filter(({ method }) => method === 'DELETE').map(addressOf));
  const parents = [...removals].flatMap((address) => /^(.+)\/:\w+$/.exec(address)?.[1] ?? []);
  return new Set(parents.filter((address) => removals.has(address)));
}

/** The parts of an address between its slashes. */
type Parts = readonly string[];

const isParam = (part: string | undefined) => part?.startsWith(':') === true;

/** Returns whether a path matches an address. A parameter is never empty. */
function isAt(asked: Parts, address: Parts): boolean {
  const holds = (part: string, place: number) => (isParam(part) ? asked[place] !== '' : part === asked[place]);
  return asked.length === address.length && address.every(holds);
}

/** Returns whether a request can match both of two addresses. */
function overlap(one: Parts, other: Parts): boolean {
  const mayBeSame = (part: string, place: number) => part === other[place] || isParam(part) || isParam(other[place]);
  return one.length === other.length && one.every(mayBeSame);
}

/** Returns whether the router prefers the first of two addresses that a request matches: literal parts win. */
function isPreferred(one: Parts, other: Parts): boolean {
  const place = one.findIndex((part, at) => isParam(part) !== isParam(other[at]));
  return place >= 0 && isParam(other[place]);
}

/** One slash at the end is as good as none. Rule: FIT-40. */
function withoutLastSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

/** The path that a request asks for. Its first line may name the host, too (RFC 9112, section 3.2.2). */
function pathOf(url: string): string {
  const [path = ''] = url.replace(/^https?:\/\/[^/]*/i, '').split('?', 1);
  try {
    return withoutLastSlash(decodeURI(path));
  } catch {
    return path;
  }
}

/** A known address with another method is 405 and says which methods it takes. Rule: ERR-19. */
function errorFor(methods: readonly string[]): ApiError {
  return new ApiError('methodNotAllowed', { headers: { allow: methods.join(', ') } });
}

/** Why a request has no route: its address takes other methods, or nothing is there. */
export type NoRoute = (url: string) => ApiError;

/**
 * Rejects requests that have no route, with the reason. The router need not have every address once for each method:
 * only where it would take an address for another with a parameter, it gets a route that rejects.
 * @param open addresses that take GET from any caller
 */
export function refuseOtherMethods(
  app: FastifyInstance,
  endpoints: readonly AnyEndpoint[],
  open: readonly string[],
): NoRoute {
  const methodsOf = new Map<string, string[]>(open.map((url) => [url, ['GET', 'HEAD']]));
  for (const endpoint of endpoints) {
    const methods = methodsOf.get(addressOf(endpoint)) ?? [];
    methods.push(endpoint.method, ...(endpoint.method === 'GET' ? ['HEAD'] : []));
    methodsOf.set(addressOf(endpoint), methods);
  }
  const known = [...methodsOf].map(([url, methods]) => ({ url, methods, parts: url.split('/') }));
  for (const { url, methods, parts } of known) {
    const hidden = known.filter((other) => overlap(parts, other.parts) && isPreferred(parts, other.parts));
    const taken = new Set(hidden.flatMap((other) => other.methods).filter((method) => !methods.includes(method)));
    const refuse = () => {
      throw errorFor(methods);
    };
    if (taken.size > 0) {
      app.route({ method: [...taken], url, config: { open: 'refusal' }, onRequest: refuse, handler: refuse });
    }
  }
  return (url) => {
    const asked = pathOf(url).split('/');
    const [first, ...others] = known.filter(({ parts }) => isAt(asked, parts));
    const closest = others.reduce((best, one) => (best && isPreferred(one.parts, best.parts) ? one : best), first);
    return closest ? errorFor(closest.methods) : new ApiError('notFound');
  };
}
