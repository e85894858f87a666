import type { Clock } from '../base/clock.ts';
import type { Reader, Tx } from '../db/database.ts';
import { validate } from './authenticator.ts';
import { unauthorized } from './bearer.ts';
import { admit, type Policy } from './policy.ts';
import type { CredentialRecord, Principal } from './principal.ts';

/** What an operation demands of its caller: its policy, and the raw path parameters that the policy speaks of. */
interface Demand {
  readonly policy: Policy;
  readonly params: Readonly<Record<string, string>>;
}

/**
 * Admits a caller again, by the state that `read` sees: between admission and a transaction a body arrived and others
 * wrote. Throws what admission would throw now: the 401 of a credential that was revoked or signed out, expired or lost
 * its owner, and else the refusal of the policy. Returns the caller as of now.
 */
export type Reauthorize = (read: Reader, caller: Principal, demand: Demand) => Promise<Principal>;

/**
 * Runs `work` in one transaction that begins by admitting the caller again; see `Database.transaction`. The only way to
 * write for a caller. Rules: AUTH-27, STORE-7.
 * @param work is given the caller as of this transaction
 */
export type Write = <T>(work: (tx: Tx, caller: Principal) => Promise<T>) => Promise<T>;

/** A caller and what is written with for the caller, as a handler hands them on. */
export interface ForCaller<C extends Principal = Principal> {
  readonly caller: C;
  readonly write: Write;
}

interface ReauthorizationParts {
  readonly clock: Clock;
  readonly findToken: (read: Reader, id: string) => Promise<CredentialRecord | null>;
  readonly findSession: (read: Reader, id: string) => Promise<CredentialRecord | null>;
}

/** Makes the reauthorization out of the look-ups of both kinds of credential. Rules: AUTH-27, STORE-7. */
export function reauthorization({ clock, findToken, findSession }: ReauthorizationParts): Reauthorize {
  return async (read, caller, { policy, params }) => {
    const record =
      caller.kind === 'token' ? await findToken(read, caller.tokenId) : await findSession(read, caller.sessionId);
    if (!record) throw unauthorized.invalid();
    const present = validate(record, clock.now());
    admit(policy, present, params);
    return present;
  };
}
