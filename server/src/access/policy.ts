import { ApiError, refuseScope } from '../base/errors.ts';
import { unauthorized } from './bearer.ts';
import type { Principal, ServicePrincipal } from './principal.ts';
import type { ServiceScope } from './scoped-tokens.ts';
import type { ScopeName } from './scopes.ts';

/** Role that a user must have. `adminOrSelf`: an administrator, or the user that the path parameter `id` names. */
type Who = 'member' | 'admin' | 'adminOrSelf';

/**
 * By what an endpoint writes that cannot ask its caller's credential again in the transaction; each is checked there instead
 * where it can change. An endpoint that does not say it opens no transaction, save for a caller by `write`.
 * - `emptySystem`: there is no organization yet, and so no one to ask.
 * - `signInProof`: a password, code or ticket, which is consumed.
 * - `providerAnswer`: the answer of the provider of single sign-on to a request of ours.
 * - `mailbox`: nothing is proved, and what is made goes to the mailbox of its owner alone.
 * - `clientSecret`: id and secret of a service client.
 * - `link`, `refreshToken`: the bearer value, which is used up.
 * - `scopedToken`: what a service was admitted with; it changes nothing that belongs to anyone.
 * - `signingOut`: ending one's own sessions, which a caller whose session has just ended may do too.
 */
interface WritesBy {
  readonly anyone: 'emptySystem' | 'signInProof' | 'providerAnswer' | 'mailbox' | 'clientSecret';
  readonly holder: 'link' | 'refreshToken';
  readonly service: 'scopedToken';
  readonly sessionOnly: 'signingOut';
}

/**
 * Rule who may call an endpoint, and with which credential. Every endpoint has one; nothing else decides.
 * - `anyone`: a credential is neither needed nor read.
 * - `holder`: the endpoint consumes the bearer value itself, such as a refresh token.
 * - `service`: takes a scoped token of a service, and nothing else.
 * - the others take a session or, where they name a scope, a personal access token that has it; where they name a scope
 *   of services too, a scoped token that has that.
 */
export type Policy =
  | { readonly who: 'anyone'; readonly writesBy?: WritesBy['anyone'] }
  | { readonly who: 'holder'; readonly writesBy?: WritesBy['holder'] }
  | { readonly who: 'service'; readonly scope: ServiceScope; readonly writesBy?: WritesBy['service'] }
  | { readonly who: Who; readonly sessionOnly: true; readonly writesBy?: WritesBy['sessionOnly'] }
  /** Takes any personal access token: scopes are checked later, or do not matter. */
  | { readonly who: Who; readonly anyScope: true; readonly writesBy?: never }
  | {
      readonly who: Who;
      readonly scope: ScopeName;
      /** Rejects callers who are no administrators with 400, before the scope is checked. Rules: ERR-13, HTTP-3. */
      readonly adminFirst?: true;
      /** The name of the path parameter that holds a token's id: a token may always do this to itself. Rule: SCOPE-25. */
      readonly selfParam?: string;
      /** Takes a scoped token of a service as well, which needs this scope. Rule: EVENT-15. */
      readonly orService?: ServiceScope;
      readonly writesBy?: never;
    };

function isItself(policy: Policy, caller: Principal, params: Readonly<Record<string, string>>): boolean {
  if (!('selfParam' in policy) || policy.selfParam === undefined || caller.kind !== 'token') return false;
  return params[policy.selfParam]?.toLowerCase() === caller.tokenId;
}

function admitScope(policy: Policy, caller: Principal, params: Readonly<Record<string, string>>): void {
  if (caller.kind === 'session') return;
  if ('sessionOnly' in policy) throw new ApiError('sessionRequired');
  if ('scope' in policy && !caller.scopes.has(policy.scope) && !isItself(policy, caller, params)) {
    throw refuseScope([policy.scope]);
  }
}

/** Throws unless the caller is an administrator. Rule: AUTH-29. */
export function requireAdministrator(caller: Principal): void {
  if (!caller.isAdmin) throw new ApiError('administratorRequired');
}

/** Throws unless the caller is an administrator or the user in question. Rule: AUTH-30. */
export function requireAdministratorOrSelf(caller: Principal, userId: string | undefined): void {
  if (!caller.isAdmin && caller.userId !== userId) throw new ApiError('administratorOrSelfRequired');
}

function admitUser(policy: Policy, caller: Principal, params: Readonly<Record<string, string>>): void {
  const adminFirst = 'adminFirst' in policy && policy.adminFirst === true;
  if (adminFirst && !caller.isAdmin) throw new ApiError('tokenAdministratorRequired');
  admitScope(policy, caller, params);
  if (policy.who === 'admin') requireAdministrator(caller);
  if (policy.who === 'adminOrSelf') requireAdministratorOrSelf(caller, params['id']?.toLowerCase());
}

function admitService(policy: Policy, { scopes, isOrganizationDeleted }: ServicePrincipal): void {
  if (!('scope' in policy)) return;
  const needed = policy.who === 'service' ? policy.scope : policy.orService;
  if (needed === undefined || scopes.has(needed)) return;
  // Rule: ORG-27.
  throw isOrganizationDeleted ? unauthorized.invalid() : refuseScope([needed]);
}

/**
 * Admits an authenticated caller or throws the policy's error: scope first, then role. Rules: HTTP-3, SERVICE-3.
 * @param params the raw path parameters
 */
export function admit(
  policy: Policy,
  caller: Principal | ServicePrincipal,
  params: Readonly<Record<string, string>>,
): void {
  if (caller.kind === 'service') admitService(policy, caller);
  else admitUser(policy, caller, params);
}
