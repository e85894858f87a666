import ipaddr from 'ipaddr.js';

/** Bits of an IPv4-mapped IPv6 address before the IPv4 part. */
const mappedBits = 96;

type Network = ReturnType<typeof ipaddr.parseCIDR>;

function toNetwork(text: string): Network {
  if (text.includes('/')) {
    const [network, bits] = ipaddr.parseCIDR(text);
    // A network of IPv4 addresses, as IPv6 writes them.
    const isMapped = network instanceof ipaddr.IPv6 && network.isIPv4MappedAddress() && bits >= mappedBits;
    return isMapped ? [network.toIPv4Address(), bits - mappedBits] : [network, bits];
  }
  const address = ipaddr.process(text);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}

function isIn(address: ipaddr.IPv4 | ipaddr.IPv6, [network, bits]: Network): boolean {
  return address.kind() === network.kind() && address.match(network, bits);
}

/**
 * Returns a function that tells whether an address is in one of some networks. IPv4-mapped IPv6 addresses count as
 * IPv4; text that is no address is in none.
 * @param list returns the present addresses and networks; the same array as long as nothing changes
 */
export function networkMatcher(list: () => readonly string[]): (address: string) => boolean {
  let known: readonly string[] = [];
  let networks: readonly Network[] = [];
  return (address) => {
    const present = list();
    if (present !== known) {
      networks = present.map(toNetwork);
      known = present;
    }
    if (networks.length === 0 || !ipaddr.isValid(address)) return false;
    const parsed = ipaddr.process(address);
    return networks.some((network) => isIn(parsed, network));
  };
}
