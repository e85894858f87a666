import { promises as dns, type LookupAddress } from 'node:dns';
import { isIP, isIPv4, isIPv6, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { buildConnector } from 'undici';
import { networkMatcher } from '../networks.ts';

/** Asks what addresses a name has. */
export type Resolve = (hostname: string) => Promise<readonly LookupAddress[]>;

/** Thrown for an address that webhooks may not go to. */
export class ForbiddenAddressError extends Error {
  override readonly name = 'ForbiddenAddressError';
}

/** How IPv6 writes an IPv4 address that a translator stands in front of (RFC 6052). */
const translated = ipaddr.parseCIDR('64:ff9b::/96');
const globalUnicast = ipaddr.parseCIDR('2000::/3');

/**
 * An address in its one normal form; `null` for what is none, or is good on one link only. Addresses that end in one of
 * IPv4 have several forms, which are not read alike everywhere.
 */
function normalForm(address: string): string | null {
  if (isIPv4(address)) return address;
  const url = `http://[${address}]`;
  return isIPv6(address) && URL.canParse(url) ? new URL(url).hostname.slice(1, -1) : null;
}

/** An address, or the IPv4 address that it leads to. */
function read(address: string): ipaddr.IPv4 | ipaddr.IPv6 {
  const parsed = ipaddr.process(address);
  const isTranslated = parsed instanceof ipaddr.IPv6 && parsed.match(translated);
  return isTranslated ? ipaddr.fromByteArray(parsed.toByteArray().slice(-4)) : parsed;
}

/**
 * Tells whether an address is one that the whole internet may be reached by: global unicast, and of no range that has a
 * meaning of its own. What is no address is not.
 */
export function isPublicAddress(address: string): boolean {
  const form = normalForm(address);
  if (form === null) return false;
  const parsed = read(form);
  // Everything that is not named has the range "unicast", also what was never given to anybody.
  return parsed.range() === 'unicast' && (parsed instanceof ipaddr.IPv4 || parsed.match(globalUnicast));
}

/** Tells whether an address may be connected to. */
export type Judge = (address: string) => boolean;

/**
 * Makes the judgement on addresses. Rules: EVENT-24, CONFIG-31.
 * @param networks what is allowed although it is not public; with `http:` nothing else is
 */
export function addressJudge(protocol: string, networks: readonly string[]): Judge {
  const matches = networkMatcher(() => networks);
  const isListed = (address: string) => matches(normalForm(address) ?? '');
  if (protocol !== 'https:') return isListed;
  return (address) => isPublicAddress(address) || isListed(address);
}

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
