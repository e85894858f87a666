import type { Principal, ServicePrincipal } from '../access/principal.ts';
import type { BudgetLeft, Limits } from '../limits/limits.ts';
import type { AllServices } from '../services.ts';
import type { AnyEndpoint } from './endpoint.ts';

type Caller = Principal | ServicePrincipal | null;

/** Rows of a list that cost as much as one more read. */
const rowsOfRead = 1_000;

/** Returns what a call costs its caller's budget; `null`: nothing. Rules: HTTP-35, HTTP-36. */
export function costOf({ method, costs, isMcp }: AnyEndpoint): 'read' | 'write' | null {
  if (costs !== undefined) return costs === 'nothing' ? null : costs;
  return method === 'GET' || isMcp ? null : 'write';
}

/** A call that waited longer for its turn is admitted anew. */
const promptMsMax = 500;

interface Read<T> {
  readonly caller: Principal;
  /** Whom the endpoint is for. */
  readonly who: 'member' | 'admin';
  readonly work: () => Promise<T>;
}

/** Carries a read out in its turn, and charges the time that it took to its caller. Rules: HTTP-36, HTTP-38. */
function readInTurn<T>(
  { limits, reads, reauthorize, db }: Pick<AllServices, 'limits' | 'reads' | 'reauthorize' | 'db'>,
  { caller, who, work }: Read<T>,
): Promise<T> {
  const askedMs = performance.now();
  return reads.run(caller.userId, async () => {
    const begunMs = performance.now();
    limits.requireReadTime(caller);
    try {
      if (begunMs - askedMs > promptMsMax) {
        await reauthorize(db.read, caller, { policy: { who, anyScope: true }, params: {} });
      }
      return await work();
    } finally {
      limits.chargeReadTime(caller, performance.now() - begunMs);
    }
  });
}

/**
 * Carries out a call of an endpoint.
 * @param showLeft gets what the caller has left of the budget, before the work begins; `null`: limits are off
 */
type Carry = <T>(caller: Caller, work: () => Promise<T>, showLeft?: (left: BudgetLeft | null) => void) => Promise<T>;

/**
 * What takes a call of an endpoint out of the budget of the user who makes it and carries it out; `null` where its calls cost
 * nothing. Services and callers without a credential have no budget: other limits hold for them. Rules: HTTP-35, HTTP-36.
 */
export function spending(endpoint: AnyEndpoint, services: AllServices): Carry | null {
  const cost = costOf(endpoint);
  const who = endpoint.policy.who === 'admin' ? 'admin' : 'member';
  if (cost === null) return null;
  return async (caller, work, showLeft) => {
    if (!caller || caller.kind === 'service') return work();
    if (cost === 'write') {
      const left = await services.limits.countWrite(caller);
      showLeft?.(left);
      return work();
    }
    const left = services.limits.countRead(caller);
    showLeft?.(left);
    // A backend takes its own time, and has its own limits.
    const isOurs = !endpoint.forwardsCredential || services.connector === null;
    return isOurs ? readInTurn(services, { caller, who, work }) : work();
  };
}

/**
 * Returns the function that charges the rows of a list to its reader as they are sent: if they were too many, the next
 * read is rejected.
 */
export function rowsCharged(limits: Limits, caller: Caller): (rows: number) => void {
  let left = rowsOfRead;
  return (rows) => {
    left -= rows;
    if (left > 0 || !caller || caller.kind === 'service') return;
    const reads = Math.ceil((1 - left) / rowsOfRead);
    left += reads * rowsOfRead;
    limits.chargeReads(caller, reads);
  };
}
