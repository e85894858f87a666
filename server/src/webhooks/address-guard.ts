import type { LookupAddress } from 'node:dns';
import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
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
