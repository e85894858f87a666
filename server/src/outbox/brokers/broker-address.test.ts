import { describe, expect, it } from 'vitest';
import { readBrokerAddress } from './broker-address.ts';

/** Parses an address, with the password in clear. */
function read(text: string) {
  const address = readBrokerAddress(text);
  return address && { ...address, password: address.password?.expose() ?? null };
}

const nats = { kind: 'nats', isTls: false, username: null, password: null, database: 0 };
const redis = { ...nats, kind: 'redis' };

describe('the address of a broker', () => {
  it.each([
    ['nats://mq.example', { ...nats, hosts: [{ host: 'mq.example', port: 4222 }] }],
    ['nats://mq.example:80/', { ...nats, hosts: [{ host: 'mq.example', port: 80 }] }],
    ['tls://10.0.0.7:4333', { ...nats, isTls: true, hosts: [{ host: '10.0.0.7', port: 4333 }] }],
    [
      'nats://ada:pa%3A55%40@a:1,b,[::1]:3,[fd00::1]',
      {
        ...nats,
        username: 'ada',
        password: 'pa:55@',
        hosts: [
          { host: 'a', port: 1 },
          { host: 'b', port: 4222 },
          { host: '::1', port: 3 },
          { host: 'fd00::1', port: 4222 },
        ],
      },
    ],
    ['nats://t%2Foken@a', { ...nats, password: 't/oken', hosts: [{ host: 'a', port: 4222 }] }],
    ['redis://cache', { ...redis, hosts: [{ host: 'cache', port: 6379 }] }],
    ['redis://cache/', { ...redis, hosts: [{ host: 'cache', port: 6379 }] }],
    ['redis://:p%25@cache:6380/3', { ...redis, password: 'p%', database: 3, hosts: [{ host: 'cache', port: 6380 }] }],
    [
      'rediss://ada:pw:x@[::1]:7/12',
      { ...redis, isTls: true, username: 'ada', password: 'pw:x', database: 12, hosts: [{ host: '::1', port: 7 }] },
    ],
  ])('%s (CONFIG-10)', (text, said) => {
    expect(read(text)).toEqual(said);
  });

  it.each([
    '',
    'mq.example:4222',
    'kafka://mq.example',
    'http://mq.example',
    'NATS://mq.example',
    'nats:mq.example',
    'nats://',
    'nats://@a',
    'nats://:@a',
    'nats://ada:@a,',
    'nats://a,,b',
    'nats://a:0',
    'nats://a:65536',
    'nats://a:x',
    'nats://a b',
    'nats://a/stream',
    'nats://a?tls=true',
    'nats://a#b',
    'nats://%zz@a',
    'redis://a,b',
    'redis://ada@a',
    'redis://a/x',
    'redis://a/-1',
    'redis://a/1/2',
    'unix:///run/redis.sock',
  ])('refuses %j (CONFIG-10)', (text) => {
    expect(read(text)).toBeNull();
  });
});
