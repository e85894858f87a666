import { describe, expect, it } from 'vitest';
import { trustedProxies } from './trusted-proxies.ts';

describe('trustedProxies (CONFIG-16)', () => {
  it.each([
    ['10.0.0.7', '10.0.0.7', true],
    ['10.0.0.7', '10.0.0.8', false],
    ['10.0.0.7', '::ffff:10.0.0.7', true],
    ['10.0.0.7', '::ffff:a00:7', true],
    ['::ffff:10.0.0.7', '10.0.0.7', true],
    ['10.0.0.0/8', '10.255.255.255', true],
    ['10.0.0.0/8', '11.0.0.0', false],
    ['10.0.0.0/8', '::ffff:10.1.2.3', true],
    ['10.0.0.0/8', 'a00::', false],
    ['::ffff:10.0.0.0/104', '10.1.2.3', true],
    ['::ffff:10.0.0.0/104', '11.1.2.3', false],
    ['2001:db8::1', '2001:db8::1', true],
    ['2001:db8::1', '2001:0DB8:0:0:0:0:0:1', true],
    ['2001:db8::1', '2001:db8::2', false],
    ['2001:db8::/32', '2001:db8:ffff::9', true],
    ['2001:db8::/32', '2001:db9::9', false],
    ['2001:db8::/32', '10.0.0.7', false],
    ['::1', '127.0.0.1', false],
    ['127.0.0.1', '::1', false],
    ['10.0.0.7', 'unknown', false],
    ['10.0.0.7', '', false],
    ['10.0.0.7', '10.0.0.7:443', false],
  ])('with %s, a peer at %s: %s', (listed, peer, expected) => {
    expect(trustedProxies(() => ['192.0.2.1', listed])(peer)).toBe(expected);
  });

  it('trusts nobody without a list', () => {
    const isTrusted = trustedProxies(() => []);
    for (const peer of ['127.0.0.1', '::1', '10.0.0.7']) expect(isTrusted(peer)).toBe(false);
  });

  it('goes by the list of the moment', () => {
    let list = ['10.0.0.7'];
    const isTrusted = trustedProxies(() => list);
    const seen = () => ['10.0.0.7', '10.0.0.8'].map(isTrusted);
    expect(seen()).toEqual([true, false]);
    list = ['10.0.0.8'];
    expect(seen()).toEqual([false, true]);
    list = [];
    expect(seen()).toEqual([false, false]);
  });
});
