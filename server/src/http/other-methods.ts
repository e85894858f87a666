import type { FastifyInstance } from 'fastify';
import { RefusedError } from '../errors.ts';
import { type AnyEndpoint, addressOf } from './endpoint.ts';

const nothingAfterSlash = /^[^?]*\/(\/|\?|$)/;

/** A slash at the end, or before another, makes another address; the router takes it for a parameter that is empty. */
export function hasEmptyParam(url: string, params: unknown): boolean {
  if (!nothingAfterSlash.test(url)) return false;
  return typeof params === 'object' && params !== null && Object.values(params).includes('');
}

/** The parts of an address between its slashes. */
type Address = readonly string[];

/** Whether requests to some address get to another, too, whose parameters stand for what is written there. */
function isWithin(address: Address, wider: Address): boolean {
  const holds = (part: string, place: number) =>
    part === address[place] || (part.startsWith(':') && address[place] !== '');
  return address.length === wider.length && wider.every(holds);
}

function decoded(url: string): string {
  const [path = ''] = url.split('?', 1);
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

/** A known address with another method is 405 and says which methods it takes. Rule: ERR-19. */
function refusalFor(methods: readonly string[]): RefusedError {
  return new RefusedError('methodNotAllowed', { headers: { allow: methods.join(', ') } });
}

/** Why a request has no route: its address takes other methods, or nothing is there. */
export type NoRoute = (url: string) => RefusedError;

/**
 * Tells why requests have no route. The router need not hold every address once for each method that there is: only where
 * it would take an address for another with a parameter, it gets a route that refuses.
 * @param open addresses that take GET from everybody
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
  const known = [...methodsOf].map(([url, methods]) => ({ url, methods, address: url.split('/') }));
  for (const { url, methods, address } of known) {
    const wider = known.filter((other) => other.url !== url && isWithin(address, other.address));
    const taken = new Set(wider.flatMap((other) => other.methods).filter((method) => !methods.includes(method)));
    const refuse = () => {
      throw refusalFor(methods);
    };
    if (taken.size > 0) {
      app.route({ method: [...taken], url, config: { open: 'refusal' }, onRequest: refuse, handler: refuse });
    }
  }
  return (url) => {
    const asked = decoded(url).split('/');
    const found = known.filter(({ address }) => isWithin(asked, address));
    const closest = found.find(({ url: own }) => !own.includes(':')) ?? found[0];
    return closest ? refusalFor(closest.methods) : new RefusedError('notFound');
  };
}
