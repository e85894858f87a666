import { ApiError } from '../base/errors.ts';
import type { Tx } from '../db/database.ts';

/**
 * Proof of a user's identity. Others may write between the proof and the transaction that acts on it: there it is
 * checked again.
 */
export interface Proof {
  /** Consumes what can be used once; returns whether the proof still holds. */
  readonly consume: (tx: Tx) => Promise<boolean>;
}

/** The 401 of every way to fail at proving who one is, alike. Rule: AUTH-9. */
export function refuseSignIn(): ApiError {
  return new ApiError('signInRefused', { headers: { 'www-authenticate': 'Bearer realm="latchkey"' } });
}
