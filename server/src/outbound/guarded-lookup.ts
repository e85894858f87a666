import { promises as dns, type LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { type AddressCheck, ForbiddenAddressError, type Resolve } from './address-guard.ts';

const resolveBySystem: Resolve = (hostname) => dns.lookup(hostname, { all: true });

/** Resolves a name and returns its addresses, all of which are allowed; throws ForbiddenAddressError otherwise. */
async function lookUp(hostname: string, check: AddressCheck, resolve: Resolve): Promise<readonly LookupAddress[]> {
  const addresses = await resolve(hostname);
  if (!addresses.every(({ address }) => check(address))) throw new ForbiddenAddressError();
  return addresses;
}

/** Looks names up for a connection; fails with ForbiddenAddressError where an address may not be connected to. */
export function guardedLookup(check: AddressCheck, resolve: Resolve = resolveBySystem): LookupFunction {
  return (hostname, options, callback) => {
    async function response(): Promise<void> {
      let addresses: readonly LookupAddress[];
      try {
        addresses = await lookUp(hostname, check, resolve);
      } catch (error) {
        callback(error instanceof Error ? error : new Error(String(error)), '');
        return;
      }
      const [first] = addresses;
      if (!first) callback(Object.assign(new Error('no address'), { code: 'ENOTFOUND' }), '');
      else if (options.all) callback(null, [...addresses]);
      else callback(null, first.address, first.family);
    }
    void response();
  };
}
