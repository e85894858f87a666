import { isIP } from 'node:net';
import { buildConnector } from 'undici';
import { ForbiddenAddressError, type Judge, type Resolve } from './address-guard.ts';
import { guardedLookup } from './guarded-lookup.ts';

/** How the guard's connections are made. */
interface ConnectorParts {
  readonly judge: Judge;
  /** The system's, without it. */
  readonly resolve?: Resolve | undefined;
  /** Certificates that are trusted instead of the usual ones, as PEM. */
  readonly ca?: string | undefined;
  readonly timeoutMs: number;
}

/**
 * Makes connections to allowed addresses only. What is judged is what is connected to: each address that a name has at
 * this moment, or the address that stands in place of a name. Fails with ForbiddenAddressError for any other, before
 * anything is sent there. Rule: EVENT-24.
 */
export function guardedConnector({ judge, resolve, ca, timeoutMs }: ConnectorParts): buildConnector.connector {
  const trust = ca === undefined ? {} : { ca };
  const connect = buildConnector({ timeout: timeoutMs, lookup: guardedLookup(judge, resolve), ...trust });
  return (options, callback) => {
    // No name, so nobody looks it up.
    const isForbidden = isIP(options.hostname) !== 0 && !judge(options.hostname);
    if (isForbidden) callback(new ForbiddenAddressError(), null);
    else connect(options, callback);
  };
}
