import { randomBytes } from 'node:crypto';
import { minute } from '../../base/clock.ts';
import { Secret } from '../../base/secret.ts';

/** Lifetime of the ticket that a browser brings back from the provider. Rule: AUTH-56. */
export const ticketMs = 2 * minute;
/** Prefix by which it is recognized, so that logs can mask it. */
const mark = 'lkt_';

/** A new ticket, of 256 random bits. */
export function createRawTicket(): Secret {
  return new Secret(mark + randomBytes(32).toString('base64url'));
}
