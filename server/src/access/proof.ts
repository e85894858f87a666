import { RefusedError } from '../base/errors.ts';
import type { Tx } from '../db/database.ts';

/** What somebody has proved. Between the proof and the transaction that acts on it others wrote: there it is asked again. */
export interface Proof {
  /** Consumes what can be used once; returns whether the proof still holds. */
  readonly consume: (tx: Tx) => Promise<boolean>;
}

/** The 401 of every way to fail at proving who one is, alike. Rule: AUTH-9. */
export function refuseSignIn(): RefusedError {
  return new RefusedError('signInRefused', { headers: { 'www-authenticate': 'Bearer realm="latchkey"' } });
}
