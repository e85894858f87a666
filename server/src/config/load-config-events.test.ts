import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { StartupError } from '../base/errors.ts';
import { loadConfig } from './load-config.ts';

const allowed =
  'it must be nats://user:password@host:port, tls://…, redis://user:password@host:port/database or rediss://…, user and password percent-encoded or left out';

function apiError(environment: Readonly<Record<string, string>>): string {
  try {
    loadConfig(environment);
  } catch (error) {
    if (error instanceof StartupError && !/[\r\n]/.test(error.message)) return error.message;
    throw error;
  }
  throw new Error('accepted');
}

describe('where events go', () => {
  it('is nowhere but the own log unless it is said, and 30 days are kept (CONFIG-10, CONFIG-15, CONFIG-30)', () => {
    for (const environment of [{}, { EVENTS_URL: '', EVENTS_FORMAT: '', EVENT_RETENTION_DAYS: '' }]) {
      const { eventsUrl, eventsFormat, eventRetentionDays } = loadConfig(environment);
      expect({ eventsUrl, eventsFormat, eventRetentionDays }).toEqual({
        eventsUrl: null,
        eventsFormat: 'envelope',
        eventRetentionDays: 30,
      });
    }
  });

  it.each([
    'nats://mq.example',
    'nats://ada:pa55word@a:4222,b:4222',
    'tls://t0ken@mq.example:4222',
    'redis://:pa55word@cache.example:6379/2',
    'rediss://ada:pa55word@cache.example',
  ])('may be %s, which nothing prints (CONFIG-10)', (address) => {
    const config = loadConfig({ EVENTS_URL: address });
    expect(config.eventsUrl?.expose()).toBe(address);
    expect(`${JSON.stringify(config)}${inspect(config, { depth: null })}`).not.toMatch(/pa55|t0ken|mq\.example/);
  });

  it.each([
    ['kafka://ada:pa55word@mq.example:9092', 'kafka://[secret]@mq.example:9092'],
    ['amqp://mq.example', 'amqp://mq.example'],
    ['mq.example:4222', 'mq.example:4222'],
    ['ada:pa55word@mq.example:4222', '[secret]@mq.example:4222'],
    ['nats:/ada:pa55word@mq.example', '[secret]@mq.example'],
    ['nats://pa55word@mq.example/stream', 'nats://[secret]@mq.example/stream'],
    ['nats://ada:pa55@word@mq.example:x', 'nats://[secret]@mq.example:x'],
    ['nats://ada:%pa55word@mq.example', 'nats://[secret]@mq.example'],
    ['nats://ada:pa55word', 'nats://ada:[secret]'],
    ['nats://mq.example?token=pa55word', 'nats://mq.example?[secret]'],
    ['redis://ada:pa55word@a:1,b:2', 'redis://[secret]@a:1,b:2'],
    ['redis://:pa55word@cache.example/x', 'redis://[secret]@cache.example/x'],
    ['redis://cache.example:99999', 'redis://cache.example:99999'],
  ])('is not %s, and the password is masked (CONFIG-10, CONFIG-24)', (address, told) => {
    expect(apiError({ EVENTS_URL: address })).toBe(`EVENTS_URL is ${JSON.stringify(told)}: ${allowed}`);
    for (const name of ['DATABASE_URL', 'PORT']) expect(apiError({ [name]: address })).not.toContain('pa55');
  });

  it('has one of two forms (CONFIG-30)', () => {
    expect(loadConfig({ EVENTS_FORMAT: 'envelope' }).eventsFormat).toBe('envelope');
    expect(loadConfig({ EVENTS_FORMAT: 'cloudevents' }).eventsFormat).toBe('cloudevents');
    for (const value of ['CloudEvents', 'json', 'cloudevents,envelope']) {
      expect(apiError({ EVENTS_FORMAT: value })).toBe(
        `EVENTS_FORMAT is "${value}": it must be envelope or cloudevents`,
      );
    }
  });

  it('is kept for 1 to 36,500 days (CONFIG-15)', () => {
    expect(loadConfig({ EVENT_RETENTION_DAYS: '36500' }).eventRetentionDays).toBe(36_500);
    for (const value of ['0', '36501', '1.5', '-1', '7 days']) {
      expect(apiError({ EVENT_RETENTION_DAYS: value })).toMatch(/^EVENT_RETENTION_DAYS is ".+": it must be /);
    }
  });
});
