import type { Policy } from '../access/policy.ts';
import type { Principal, ServicePrincipal } from '../access/principal.ts';
import type { Write } from '../access/reauthorization.ts';
import type { ServiceScope } from '../access/scoped-tokens.ts';
import type { AllServices, Services } from '../services.ts';

/** What a handler works with: what opens transactions by itself only where the policy says what it writes by. */
export type ServicesOf<P extends Policy> = P extends { readonly writesBy: string } ? AllServices : Services;

/** Policies whose caller is no user, or not always. */
type WithoutUser = { readonly who: 'anyone' | 'holder' | 'service' } | { readonly orService: ServiceScope };

/** `T` where a user's request may change something, and `undefined` elsewhere. */
export type IfWriting<M, P extends Policy, T> = M extends 'GET' ? undefined : P extends WithoutUser ? undefined : T;

const withoutUser: ReadonlySet<string> = new Set(['anyone', 'holder', 'service']);

interface Admitted {
  readonly caller: Principal | ServicePrincipal | null;
  /** As admission saw them. */
  readonly params: Readonly<Record<string, string>>;
}

/**
 * Makes what a handler writes with for its caller: one transaction in which the endpoint's policy admits the caller again.
 * `null` for an endpoint that only reads, or has no user as its caller. Rules: AUTH-27, STORE-7.
 */
export function writerOf(
  { method, policy }: { readonly method: string; readonly policy: Policy },
  services: () => Pick<AllServices, 'db' | 'reauthorize'>,
) {
  if (method === 'GET' || withoutUser.has(policy.who)) return null;
  return ({ caller, params }: Admitted) => {
    if (!caller || caller.kind === 'service') return {};
    const demand = { policy, params };
    const write: Write = (work) => {
      const { db, reauthorize } = services();
      return db.transaction(async (tx) => work(tx, await reauthorize(tx, caller, demand)));
    };
    const again = () => {
      const { db, reauthorize } = services();
      return reauthorize(db.read, caller, demand);
    };
    return { write, reauthorize: again };
  };
}
