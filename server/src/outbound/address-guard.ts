import type { LookupAddress } from 'node:dns';
import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { connectionText } from '../base/connection-error.ts';
import { networkMatcher } from '../base/networks.ts';

/** Asks what addresses a name has. */
export type Resolve = (hostname: string) => Promise<readonly LookupAddress[]>;

/** Thrown for an address that nothing may be sent to. */
export class ForbiddenAddressError extends Error {
  override readonly name = 'ForbiddenAddressError';

  constructor() {
    super('the address is not public, and not in OUTBOUND_NETWORKS');
  }
}

/**
 * Thrown for any failure at an address that is not public, with one text: trying settings must not reveal whether a
 * port is open there. The cause is for the log.
 */
export class InsideError extends Error {
  override readonly name = 'InsideError';

  constructor(cause?: unknown) {
    super('no valid response, from an address that is not public', { cause });
  }
}

/** Prefix of IPv6 addresses that a translator maps to IPv4 (RFC 6052). */
const translated = ipaddr.parseCIDR('64:ff9b::/96');
const globalUnicast = ipaddr.parseCIDR('2000::/3');

/**
 * Returns the normal form of an address; `null` for other text, and for link-local ones. Addresses that end in an IPv4
 * part have several forms, which are not parsed alike everywhere.
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
 * Returns whether an address is reachable from the whole internet: global unicast, and of no range with a special
 * meaning. `false` for text that is no address.
 */
export function isPublicAddress(address: string): boolean {
  const form = normalForm(address);
  if (form === null) return false;
  const parsed = read(form);
  // Every address without a named range counts as "unicast", unassigned ones included.
  return parsed.range() === 'unicast' && (parsed instanceof ipaddr.IPv4 || parsed.match(globalUnicast));
}

/** Tells whether an address may be connected to. */
export type AddressCheck = (address: string) => boolean;

/**
 * Returns the message that an `InsideError`, in an error or its causes, hides; `null` where there is none. For the
 * operator only.
 */
export function hiddenReason(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  if (!(error instanceof InsideError)) return hiddenReason(error.cause);
  const { cause } = error;
  const innermost = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  return innermost instanceof Error ? connectionText(innermost) : null;
}

/** Wraps a check so that it remembers whether the last allowed address is not public. */
export function insideWatch(check: AddressCheck): { readonly check: AddressCheck; readonly isInside: () => boolean } {
  let isInside = false;
  return {
    check: (address) => {
      const isAllowed = check(address);
      if (isAllowed) isInside = !isPublicAddress(address);
      return isAllowed;
    },
    isInside: () => isInside,
  };
}

const literalForm = /^[\d.]+$|^\[|:/;

/** Returns whether a host is an address, or a name of this machine, that may not be connected to. Other names are looked up later. */
export function isForbiddenHost(host: string, check: AddressCheck): boolean {
  if (/^(?:.*\.)?localhost\.?$/i.test(host)) return !check('127.0.0.1') && !check('::1');
  return literalForm.test(host) && !check(host.replace(/^\[|\]$/g, ''));
}

/**
 * Returns the check of addresses. Rules: EVENT-24, CONFIG-31, CONFIG-40.
 * @param networks allowed networks that are not public; with `http:` nothing else is allowed
 */
export function addressCheck(protocol: string, networks: readonly string[]): AddressCheck {
  const matches = networkMatcher(() => networks);
  const isListed = (address: string) => matches(normalForm(address) ?? '');
  if (protocol !== 'https:') return isListed;
  return (address) => isPublicAddress(address) || isListed(address);
}
