import type { FastifyReply } from 'fastify';
import type { Authenticator } from '../access/authenticator.ts';
import { readBearer } from '../access/bearer.ts';
import { type Limits, networkOf } from '../access/limits.ts';
import { admit } from '../access/policy.ts';
import type { Principal } from '../access/principal.ts';
import { RefusedError } from '../errors.ts';
import type { Services } from '../services.ts';
import type { AnyEndpoint } from './endpoint.ts';
import type { EndpointRequest } from './input.ts';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Principal | null;
  }
}

/** Bad credentials get their 401, and from one network only so many of them; good ones are never held back by that. */
export async function countBadCredential(limits: Limits, error: unknown, network: string): Promise<never> {
  // Wrong passwords have a slow-down of their own.
  const isCounted = error instanceof RefusedError && error.status === 401 && error.refusal !== 'signInRefused';
  if (isCounted) await limits.count('badCredential', networkOf(network));
  throw error;
}

/** What admits a request to an endpoint, or refuses it: the credential first, then the policy. Rules: HTTP-2, HTTP-4. */
export function admission({ policy, precondition }: AnyEndpoint, authenticator: Authenticator, services: Services) {
  async function admitSlowly(request: EndpointRequest): Promise<void> {
    const { headers, raw, params } = request;
    if (policy.who === 'holder') {
      readBearer(headers.authorization, []);
    } else if (policy.who !== 'anyone') {
      request.caller = await authenticator
        .prove(headers.authorization, raw.socket)
        .catch((error) => countBadCredential(services.limits, error, request.ip));
      admit(policy, request.caller, params);
    }
    await precondition?.(services);
  }

  return (request: EndpointRequest, _reply: FastifyReply, done: (error?: Error) => void): void => {
    const { headers, raw, params } = request;
    const isQuick = policy.who !== 'anyone' && policy.who !== 'holder' && precondition === undefined;
    try {
      const caller = isQuick ? authenticator.recall(headers.authorization, raw.socket) : null;
      if (caller === null) {
        admitSlowly(request).then(() => done(), done);
        return;
      }
      admit(policy, caller, params);
      request.caller = caller;
      done();
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      done(error);
    }
  };
}
