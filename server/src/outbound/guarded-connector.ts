import { isIP } from 'node:net';
import { buildConnector } from 'undici';
import { type AddressCheck, ForbiddenAddressError, type Resolve } from './address-guard.ts';
import { guardedLookup } from './guarded-lookup.ts';

/** Options of the guard's connections. */
interface ConnectorParts {
  readonly check: AddressCheck;
  /** The system's, without it. */
  readonly resolve?: Resolve | undefined;
  /** Certificates that are trusted instead of the usual ones, as PEM. */
  readonly ca?: string | undefined;
  readonly timeoutMs: number;
}

/**
 * Returns a connector that connects to allowed addresses only. The check applies to the address of the connection: each
 * that a name resolves to at this time, or the literal one. Fails with ForbiddenAddressError for any other, before
 * anything is sent there. Rule: EVENT-24.
 */
export function guardedConnector({ check, resolve, ca, timeoutMs }: ConnectorParts): buildConnector.connector {
  const trust = ca === undefined ? {} : { ca };
  const connect = buildConnector({ timeout: timeoutMs, lookup: guardedLookup(check, resolve), ...trust });
  return (options, callback) => {
    // A literal address is not looked up.
    const isForbidden = isIP(options.hostname) !== 0 && !check(options.hostname);
    if (isForbidden) callback(new ForbiddenAddressError(), null);
    else connect(options, callback);
  };
}
