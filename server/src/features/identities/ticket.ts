import { randomBytes } from 'node:crypto';
import { minute } from '../../base/clock.ts';
import { Secret } from '../../base/secret.ts';

/** How long the ticket works that one comes back with from the provider. Rule: AUTH-56. */
export const ticketMs = 2 * minute;
/** Told by its beginning wherever it turns up, so that a log can mask it. */
const mark = 'lkt_';

/** A new ticket, of 256 random bits. */
export function mintRawTicket(): Secret {
  return new Secret(mark + randomBytes(32).toString('base64url'));
}
