import { describe, expect, it } from 'vitest';
import { addressCheck, isPublicAddress } from './address-guard.ts';

describe('isPublicAddress', () => {
  it.each([
    ['1.1.1.1'],
    ['93.184.216.34'],
    ['100.63.255.255'],
    ['100.128.0.1'],
    ['172.15.0.1'],
    ['172.32.0.1'],
    ['198.17.255.255'],
    ['223.255.255.255'],
    ['2606:4700:4700::1111'],
    ['2a00:1450::1'],
    ['::ffff:1.1.1.1'],
    ['64:ff9b::1.1.1.1'],
  ])('true for %s (EVENT-24)', (address) => expect(isPublicAddress(address)).toBe(true));

  it.each([
    ['this network', '0.0.0.0'],
    ['this network', '0.1.2.3'],
    ['loopback', '127.0.0.1'],
    ['loopback', '127.255.255.254'],
    ['private', '10.0.0.1'],
    ['private', '172.16.0.1'],
    ['private', '172.31.255.255'],
    ['private', '192.168.1.1'],
    ['link-local', '169.254.169.254'],
    ['shared (RFC 6598)', '100.64.0.1'],
    ['shared (RFC 6598)', '100.127.255.255'],
    ['protocol assignments', '192.0.0.8'],
    ['documentation', '192.0.2.1'],
    ['documentation', '198.51.100.7'],
    ['documentation', '203.0.113.7'],
    ['benchmarking', '198.18.0.1'],
    ['benchmarking', '198.19.255.255'],
    ['6to4 relays', '192.88.99.1'],
    ['multicast', '224.0.0.1'],
    ['multicast', '239.255.255.255'],
    ['reserved', '240.0.0.1'],
    ['broadcast', '255.255.255.255'],
    ['unspecified', '::'],
    ['loopback', '::1'],
    ['IPv4-compatible', '::127.0.0.1'],
    ['IPv4-compatible', '::1.1.1.1'],
    ['IPv4-mapped loopback', '::ffff:127.0.0.1'],
    ['IPv4-mapped private', '::ffff:a00:1'],
    ['IPv4-translated (RFC 2765)', '::ffff:0:1.1.1.1'],
    ['NAT64 of loopback', '64:ff9b::127.0.0.1'],
    ['NAT64 of private', '64:ff9b::a00:1'],
    ['NAT64 of link-local', '64:ff9b::169.254.169.254'],
    ['local NAT64', '64:ff9b:1::1.1.1.1'],
    ['6to4 of private', '2002:a00:1::1'],
    ['6to4', '2002:101:101::1'],
    ['Teredo', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
    ['benchmarking', '2001:2::1'],
    ['ORCHID', '2001:20::1'],
    ['documentation', '2001:db8::1'],
    ['documentation', '3fff::1'],
    ['unique local', 'fc00::1'],
    ['unique local', 'fd00:ec2::254'],
    ['link-local', 'fe80::1'],
    ['link-local with a zone', 'fe80::1%eth0'],
    ['site-local', 'fec0::1'],
    ['multicast', 'ff02::1'],
    ['discard', '100::1'],
    ['segment routing', '5f00::1'],
    ['never assigned', '4000::1'],
    ['never assigned', 'a000::1'],
    ['no address', ''],
    ['no address', 'localhost'],
    ['no address', '2130706433'],
  ])('false for %s: %s (EVENT-24)', (_, address) => expect(isPublicAddress(address)).toBe(false));
});

describe('addressJudge', () => {
  const networks = ['10.1.0.0/16', '::1', '192.168.7.7'];
  it.each([
    ['https:', '1.1.1.1', true],
    ['https:', '10.1.2.3', true],
    ['https:', '::ffff:10.1.2.3', true],
    ['https:', '10.2.0.1', false],
    ['https:', '192.168.7.7', true],
    ['https:', '192.168.7.8', false],
    ['http:', '1.1.1.1', false],
    ['http:', '10.1.2.3', true],
    ['http:', '::1', true],
    ['http:', '::2', false],
    ['http:', 'no address', false],
  ])('%s %s: %s (EVENT-24, CONFIG-31)', (protocol, address, expected) => {
    expect(addressCheck(protocol, networks)(address)).toBe(expected);
  });
});
