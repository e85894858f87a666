import type { Clock } from '../base/clock.ts';
import type { Reader } from '../db/database.ts';
import { judge } from './authenticator.ts';
import { unauthorized } from './bearer.ts';
import { requireAdministrator, requireAdministratorOrSelf } from './policy.ts';
import type { HeldCredential, Principal } from './principal.ts';

/**
 * Asks again, as a rule inside a transaction, whether an admitted caller may still act: between admission and the transaction a
 * body arrived and others wrote. Throws the refusal for whoever was revoked, signed out, deleted or, where an
 * administrator is needed, demoted meanwhile. Every transaction that writes for a caller begins with it, and so does
 * what reads for the sake of a body. Returns the caller as of now.
 */
export type ConfirmCaller = (read: Reader, caller: Principal, who: Confirmed) => Promise<Principal>;

/** Who the caller has to be still: a member, an administrator, or one of those and this very user. */
type Confirmed = 'member' | 'admin' | { readonly adminOrSelf: string };

interface ConfirmationParts {
  readonly clock: Clock;
  readonly findToken: (read: Reader, id: string) => Promise<HeldCredential | null>;
  readonly findSession: (read: Reader, id: string) => Promise<HeldCredential | null>;
}

/** Makes the confirmation out of the look-ups of both kinds of credential. Rules: AUTH-27, STORE-7. */
export function callerConfirmation({ clock, findToken, findSession }: ConfirmationParts): ConfirmCaller {
  return async (read, caller, who) => {
    const held =
      caller.kind === 'token' ? await findToken(read, caller.tokenId) : await findSession(read, caller.sessionId);
    if (!held) throw unauthorized.invalid();
    const present = judge(held, clock.now());
    if (who === 'admin') requireAdministrator(present);
    if (typeof who === 'object') requireAdministratorOrSelf(present, who.adminOrSelf);
    return present;
  };
}
