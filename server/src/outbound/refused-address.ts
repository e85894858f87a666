import { promises as dns } from 'node:dns';
import { addressCheck, isForbiddenHost } from './address-guard.ts';

/**
 * Returns whether the guard will not connect to an address that someone else names; one that cannot be looked up is not
 * refused by it. Nothing is connected to. Rule: CONFIG-40.
 * @param networks what is allowed besides public addresses
 */
export async function isRefusedAddress(url: string, networks: readonly string[]): Promise<boolean> {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  const judge = addressCheck(protocol, networks);
  if (isForbiddenHost(hostname, judge)) return true;
  try {
    const addresses = await dns.lookup(hostname.replace(/^\[|\]$/g, ''), { all: true });
    return !addresses.every(({ address }) => judge(address));
  } catch {
    return false;
  }
}
