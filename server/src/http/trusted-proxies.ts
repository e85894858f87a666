import { networkMatcher } from '../networks.ts';

/**
 * Tells whether a peer is a proxy whose forwarded headers count. Rule: CONFIG-16.
 * @param list the present addresses and networks; the same array as long as nothing changes
 */
export function trustedProxies(list: () => readonly string[]): (address: string) => boolean {
  return networkMatcher(list);
}
