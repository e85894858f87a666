import type { Authenticate } from '../access/authenticator.ts';
import { readBearer } from '../access/bearer.ts';
import { type Limits, networkOf } from '../access/limits.ts';
import { admit } from '../access/policy.ts';
import type { Principal, ServicePrincipal } from '../access/principal.ts';
import type { AuthenticateService } from '../access/scoped-tokens.ts';
import { RefusedError } from '../errors.ts';
import { Secret } from '../secret.ts';
import type { Services } from '../services.ts';
import { clientAddress } from './client-address.ts';
import type { AnyEndpoint } from './endpoint.ts';
import type { EndpointRequest } from './input.ts';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Principal | ServicePrincipal | null;
  }
}

/** Bad credentials get their 401, and from one network only so many of them; good ones are never held back by that. */
export function countBadCredential(limits: Limits, error: unknown, network: string): void {
  // Wrong passwords have a slow-down of their own.
  const isCounted = error instanceof RefusedError && error.status === 401 && error.refusal !== 'signInRefused';
  if (isCounted) limits.count('badCredential', networkOf(network));
}

/** What proves who sends a request. */
export interface Authenticators {
  /** People, by a session or a personal access token. */
  readonly person: Authenticate;
  /** Services, by a scoped token. */
  readonly service: AuthenticateService;
}

/** What admits a request to an endpoint, or refuses it: the credential first, then the policy. Rules: HTTP-2, HTTP-4. */
export function admission({ policy, precondition }: AnyEndpoint, prove: Authenticators, services: Services) {
  return async (request: EndpointRequest): Promise<void> => {
    const { authorization } = request.headers;
    let held: Secret | null = null;
    try {
      if (policy.who === 'holder') held = new Secret(readBearer(authorization, []));
      else if (policy.who === 'service') request.caller = await prove.service(authorization);
      else if (policy.who !== 'anyone') request.caller = await prove.person(authorization);
      if (request.caller) admit(policy, request.caller, request.params);
      await precondition?.(services, held);
    } catch (error) {
      countBadCredential(services.limits, error, clientAddress(request));
      throw error;
    }
  };
}
