import type { Authenticate } from '../../access/authenticator.ts';
import { readBearer } from '../../access/bearer.ts';
import { admit, type Policy } from '../../access/policy.ts';
import type { Principal, ServicePrincipal } from '../../access/principal.ts';
import type { AuthenticateService } from '../../access/scoped-tokens.ts';
import { ApiError } from '../../base/errors.ts';
import { Secret } from '../../base/secret.ts';
import { type Limits, networkOf } from '../../limits/limits.ts';
import type { Services } from '../../services.ts';
import { clientAddress } from '../client-address.ts';
import type { AnyEndpoint } from '../endpoint.ts';
import type { EndpointRequest } from '../input.ts';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Principal | ServicePrincipal | null;
  }
}

/**
 * Counts bad credentials by network: beyond the limit they get 429 in place of 401. Valid ones are never limited by
 * that.
 */
export function countBadCredential(limits: Limits, error: unknown, network: string): void {
  // Wrong passwords have a slow-down of their own.
  const isCounted = error instanceof ApiError && error.status === 401 && error.errorName !== 'signInRefused';
  if (isCounted) limits.countBadCredential(networkOf(network));
}

/** Functions that authenticate the sender of a request. */
export interface Authenticators {
  /** Users, by a session or a personal access token. */
  readonly user: Authenticate;
  /** Services, by a scoped token. */
  readonly service: AuthenticateService;
}

/**
 * Authenticates the sender of a request and admits it by the endpoint's policy; `null` where no one has to be known.
 * Throws the error.
 */
export type Prove = (
  request: Pick<EndpointRequest, 'headers' | 'params'>,
) => Promise<Principal | ServicePrincipal | null>;

/** Returns a user or, where the credential is no user's, a service. Rule: EVENT-15. */
async function proveEither(prove: Authenticators, authorization: string | undefined) {
  try {
    return await prove.user(authorization);
  } catch (error) {
    if (!(error instanceof ApiError && error.errorName === 'tokenInvalid')) throw error;
    return prove.service(authorization);
  }
}

/** Returns the function that authenticates the sender of a request, and admits it or not. Rules: HTTP-2, HTTP-4. */
export function prover(policy: Policy, prove: Authenticators): Prove {
  if (policy.who === 'anyone' || policy.who === 'holder') return async () => null;
  const isEither = 'orService' in policy && policy.orService !== undefined;
  const user = isEither ? (header: string | undefined) => proveEither(prove, header) : prove.user;
  const known = policy.who === 'service' ? prove.service : user;
  return async ({ headers, params }) => {
    const caller = await known(headers.authorization);
    admit(policy, caller, params);
    return caller;
  };
}

/**
 * Adds the address of the metadata to the error of an agent that is not admitted (RFC 9728, section 5.1). Rule: MCP-3.
 */
function withMetadata(error: unknown, baseUrl: string): unknown {
  if (!(error instanceof ApiError && error.status === 401)) return error;
  const known = /error="[^"]*"/.exec(error.headers['www-authenticate'] ?? '')?.[0];
  const metadata = `resource_metadata="${baseUrl}/.well-known/oauth-protected-resource/mcp"`;
  const challenge = `Bearer ${metadata}${known === undefined ? '' : `, ${known}`}`;
  return new ApiError(error.errorName, { headers: { ...error.headers, 'www-authenticate': challenge } });
}

/**
 * Returns the hook that admits or rejects a request to an endpoint: the credential first, then the policy. Rules:
 * HTTP-2, HTTP-4.
 */
export function admission({ policy, precondition, isMcp }: AnyEndpoint, prove: Prove, services: Services) {
  return async (request: EndpointRequest): Promise<void> => {
    try {
      const held = policy.who === 'holder' ? new Secret(readBearer(request.headers.authorization, [])) : null;
      request.caller = await prove(request);
      await precondition?.(services, held);
    } catch (error) {
      countBadCredential(services.limits, error, clientAddress(request));
      throw isMcp ? withMetadata(error, services.config.baseUrl) : error;
    }
  };
}
