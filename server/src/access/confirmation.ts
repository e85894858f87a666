import type { Clock } from '../clock.ts';
import type { Tx } from '../db/database.ts';
import { RefusedError } from '../errors.ts';
import { judge } from './authenticator.ts';
import { unauthorized } from './bearer.ts';
import type { Who } from './policy.ts';
import type { HeldCredential, Principal } from './principal.ts';

/**
 * Asks again, inside a transaction, whether an admitted caller may still act: between admission and the transaction a
 * body arrived and others wrote. Throws the refusal for whoever was revoked, signed out, deleted or, where an
 * administrator is needed, demoted meanwhile. Every transaction that writes for a caller begins with it.
 */
export type ConfirmCaller = (tx: Tx, caller: Principal, who: Who) => Promise<void>;

interface ConfirmationParts {
  readonly clock: Clock;
  readonly findToken: (tx: Tx, id: string) => Promise<HeldCredential | null>;
  readonly findSession: (tx: Tx, id: string) => Promise<HeldCredential | null>;
}

/** Makes the confirmation out of the look-ups of both kinds of credential. Rules: AUTH-27, STORE-7. */
export function callerConfirmation({ clock, findToken, findSession }: ConfirmationParts): ConfirmCaller {
  return async (tx, caller, who) => {
    const held =
      caller.kind === 'token' ? await findToken(tx, caller.tokenId) : await findSession(tx, caller.sessionId);
    if (!held) throw unauthorized.invalid();
    const { isAdmin } = judge(held, clock.now());
    if (who === 'admin' && !isAdmin) throw new RefusedError('administratorRequired');
  };
}
