import { promises as dns, type LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { ForbiddenAddressError, type Judge, type Resolve } from './address-guard.ts';

/** Looks a name up and answers its addresses, all of which may be connected to; throws ForbiddenAddressError otherwise. */
async function lookUp(hostname: string, judge: Judge, resolve: Resolve): Promise<readonly LookupAddress[]> {
  const addresses = await resolve(hostname);
  if (!addresses.every(({ address }) => judge(address))) throw new ForbiddenAddressError();
  return addresses;
}

function guardedLookup(judge: Judge, resolve: Resolve): LookupFunction {
  return (hostname, options, callback) => {
    async function answer(): Promise<void> {
      let addresses: readonly LookupAddress[];
      try {
        addresses = await lookUp(hostname, judge, resolve);
      } catch (error) {
        callback(error instanceof Error ? error : new Error(String(error)), '');
        return;
      }
      const [first] = addresses;
      if (!first) callback(Object.assign(new Error('no address'), { code: 'ENOTFOUND' }), '');
      else if (options.all) callback(null, [...addresses]);
      else callback(null, first.address, first.family);
    }
    void answer();
  };
}

/** How the guard's connections are made. */
interface ConnectorParts {
  readonly judge: Judge;
  /** The system's, without it. */
  readonly resolve?: Resolve | undefined;
  /** Certificates that are trusted instead of the usual ones, as PEM. */
  readonly ca?: string | undefined;
  readonly timeoutMs: number;
}

const resolveBySystem: Resolve = (hostname) => dns.lookup(hostname, { all: true });

/**
 * Makes connections to allowed addresses only. What is judged is what is connected to: each address that a name has at
 * this moment, or the address that stands in place of a name. Fails with ForbiddenAddressError for any other, before
 * anything is sent there. Rule: EVENT-24.
 */
export function guardedConnector({
  judge,
  resolve = resolveBySystem,
  ca,
  timeoutMs,
}: ConnectorParts): buildConnector.connector {
  const trust = ca === undefined ? {} : { ca };
  const connect = buildConnector({ timeout: timeoutMs, lookup: guardedLookup(judge, resolve), ...trust });
  return (options, callback) => {
    // No name, so nobody looks it up.
    const isForbidden = isIP(options.hostname) !== 0 && !judge(options.hostname);
    if (isForbidden) callback(new ForbiddenAddressError(), null);
    else connect(options, callback);
  };
}
