import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import pino from 'pino';
import { describe, expect, it } from 'vitest';
import { addressIn, forwardingWarnings, trustedProxies } from './trusted-proxies.ts';

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
    ['10.0.0.7', '10.0.0.7:443', true],
    ['10.0.0.7', '10.0.0.8:443', false],
    ['2001:db8::1', '[2001:db8::1]', true],
    ['2001:db8::1', '[2001:db8::1]:443', true],
    ['2001:db8::1', '2001:db8::1:443', false],
    ['10.0.0.7', '10.0.0.7:port', false],
    ['0.0.0.7', '7', false],
  ])('with %s, a peer at %s: %s', (listed, peer, expected) => {
    expect(trustedProxies(() => ['192.0.2.1', listed])(peer)).toBe(expected);
  });

  it('trusts no one without a list', () => {
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

describe('addressIn (CONFIG-16)', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    [' 192.0.2.7 ', '192.0.2.7'],
    ['192.0.2.7:5678', '192.0.2.7'],
    ['2001:db8::1', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[2001:db8::1]:443', '2001:db8::1'],
    ['[::ffff:192.0.2.7]:443', '::ffff:192.0.2.7'],
    ['fe80::1%eth0', 'fe80::1'],
    ['[fe80::1%25]:443', 'fe80::1'],
    ['192.0.2.7:', null],
    ['192.0.2.7:port', null],
    ['192.0.2.7:123456', null],
    ['[192.0.2.7', null],
    ['[]', null],
    ['unknown', null],
    ['_hidden', null],
    ['', null],
    ['7', null],
    ['0x7f.1', null],
    ['127.1', null],
    ['192.0.2.07', null],
    ['localhost', null],
  ])('of %j: %j', (entry, address) => expect(addressIn(entry)).toBe(address));
});

describe('forwardingWarnings (CONFIG-16, FIT-47)', () => {
  it('warn once of a stranger, and once of a trusted proxy with another header than X-Forwarded-For', () => {
    const lines: string[] = [];
    const log = pino({ base: null }, { write: (line) => void lines.push(line) });
    const warn = forwardingWarnings(log, (peer) => peer === '10.0.0.7');
    const send = (peer: string, headers: Record<string, string>) => {
      const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: peer });
      warn(Object.assign(new IncomingMessage(socket), { headers }));
    };
    send('10.0.0.7', { 'x-forwarded-for': '203.0.113.9', forwarded: 'for=203.0.113.9' });
    send('10.0.0.9', {});
    expect(lines).toEqual([]);
    for (let time = 0; time < 2; time += 1) {
      send('10.0.0.7', { forwarded: 'for=203.0.113.9' });
      send('10.0.0.9', { 'x-forwarded-for': '203.0.113.9' });
    }
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 40, peer: '10.0.0.7', header: 'forwarded' },
      { level: 40, peer: '10.0.0.9', header: 'x-forwarded-for' },
    ]);
  });
});
