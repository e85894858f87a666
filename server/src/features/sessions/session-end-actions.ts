import type { Tx } from '../../db/database.ts';
import { forgetCodes } from '../codes/public.ts';
import { endVisits } from '../identities/public.ts';
import { endLinks } from '../links/public.ts';
import { forgetSignIns } from '../sign-in/public.ts';
import { endAllSessions, type OpenTimes } from './session-store.ts';

const linkReasons = {
  logout: 'sessions-ended',
  administrator: 'sessions-ended',
  'password-changed': 'password-changed',
  'owner-deleted': 'owner-deleted',
  'address-proved': 'email-changed',
} as const;

/**
 * Ends every session of a user, and every proof of the user that is not used yet: begun sign-ins, visits to
 * the provider of single sign-on and their tickets, mailed codes and mailed links. All sessions of a user are ended here alone. Rule: SESSION-14.
 * @param wish `open`: end only sessions that are still open by these times
 * @returns the ids of the sessions that this ended
 */
export async function endEverySignIn(
  tx: Tx,
  input: {
    readonly userId: string;
    readonly nowMs: number;
    readonly reason: keyof typeof linkReasons;
    readonly open?: OpenTimes;
  },
): Promise<string[]> {
  const { userId, nowMs, reason, open } = input;
  const ended = await endAllSessions(tx, { userId, ...(open && { open }) }, { nowMs, reason });
  await endLinks(tx, { userId, nowMs, reason: linkReasons[reason] });
  await forgetCodes(tx, userId);
  await forgetSignIns(tx, userId);
  await endVisits(tx, { userId, nowMs });
  return ended;
}
