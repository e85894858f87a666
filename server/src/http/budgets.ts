import type { Principal, ServicePrincipal } from '../access/principal.ts';
import type { Limits } from '../limits/limits.ts';
import type { AnyEndpoint } from './endpoint.ts';

type Caller = Principal | ServicePrincipal | null;

/** So many rows of a list cost as much as one more read. */
const rowsOfRead = 1_000;

function costOf({ method, costs, isMcp }: AnyEndpoint): 'read' | 'write' | null {
  if (costs !== undefined) return costs === 'nothing' ? null : costs;
  return method === 'GET' || isMcp ? null : 'write';
}

/**
 * What takes a call of an endpoint out of the budget of the user who makes it; `null` where its calls cost nothing. Services
 * and callers without a credential have no budget: other limits hold for them. Rules: HTTP-35, HTTP-36.
 */
export function spending(endpoint: AnyEndpoint, limits: Limits): ((caller: Caller) => Promise<void> | void) | null {
  const cost = costOf(endpoint);
  if (cost === null) return null;
  return (caller) => {
    if (!caller || caller.kind === 'service') return undefined;
    return cost === 'write' ? limits.countWrite(caller) : limits.countRead(caller);
  };
}

/** What charges the rows of a list to its reader as they are sent: the next read is refused if they were too many. */
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
