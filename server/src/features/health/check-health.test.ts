import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { MonotonicClock } from '../../../test/support/event-reader.ts';
import { secondConnection } from '../../../test/support/second-connection.ts';
import { type Json, TestApp } from '../../../test/support/test-app.ts';
import { second } from '../../base/clock.ts';

const paths = ['/org/health', '/users/health', '/userGroups/health', '//health/live', '//health/ready'];
const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../../../package.json'), 'utf8'));

describe('health', () => {
  let app: TestApp;

  beforeAll(async () => {
    app = await TestApp.start();
  });
  afterAll(() => app.close());

  it.each(paths)(
    '200: %s answers anyone, before there is an organization (ORG-30, USER-42, GROUP-18, RUN-4, FIT-100)',
    async (path) => {
      const { status, body } = await app.anonymous.get(path);
      const expected = { status: 'healthy', timestamp: '2026-11-27T20:17:00.123Z' };
      expect([status, body]).toEqual([200, path === '//health/ready' ? { ...expected, version } : expected]);
    },
  );

  it.each(paths)('200: %s looks at no credential and at no query (HTTP-7)', async (path) => {
    expect((await app.with('not-a-token').get(`${path}?page=x`)).status).toBe(200);
  });

  it('the time is that of the clock (HTTP-29)', async () => {
    app.clock.advance(1_500);
    expect((await app.anonymous.get('//health/live')).body.timestamp).toBe('2026-11-27T20:17:01.623Z');
    app.clock.advance(-1_500);
  });

  it.each(paths)('405: POST %s', async (path) => {
    const { status, headers } = await app.anonymous.post(path);
    expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  it('GET /health/ready is 503 without its store, and GET /health/live is not (RUN-4, ERR-27, STORE-12)', async () => {
    const failing = await TestApp.start();
    const admin = await failing.setUp();
    await failing.services.db.close();
    const { status, body, headers } = await failing.anonymous.get('//health/ready');
    expect([status, body.error.code, headers.get('retry-after')]).toEqual([503, 'UNAVAILABLE', '5']);
    expect((await failing.anonymous.get('//health/live')).status).toBe(200);
    expect((await failing.anonymous.get('/users/health')).status).toBe(200);
    // No request is admitted from the cache.
    expect((await admin.get('/users')).status).toBeGreaterThanOrEqual(500);
    await failing.close();
  });

  it('GET /health/ready is 503 when no one looks after events any more, and GET /health/live is not (RUN-4, ERR-27)', async () => {
    const stopped = await TestApp.start();
    const store = secondConnection(stopped);
    const monotonic = new MonotonicClock();
    const ready = () => stopped.anonymous.get('//health/ready');
    store.exec('ALTER TABLE webhooks RENAME TO elsewhere');
    // It may look once more before it fails.
    await vi.waitUntil(() => stopped.logLines.some((line) => line.includes('the subscriptions could not be read')));
    expect((await ready()).status).toBe(200);
    monotonic.advance(30 * second);
    const { status, body, headers } = await ready();
    expect([status, body.error.code, headers.get('retry-after')]).toEqual([503, 'UNAVAILABLE', '5']);
    expect(body.message).toBe('Events are not being relayed');
    expect((await stopped.anonymous.get('//health/live')).status).toBe(200);
    store.exec('ALTER TABLE elsewhere RENAME TO webhooks');
    await vi.waitUntil(async () => (await ready()).status === 200, { timeout: 5_000 });
    monotonic.restore();
    store.close();
    await stopped.close();
  });

  it('200: GET /health/ready while the broker is down: that is no reason to turn people away (RUN-4, EVENT-17)', async () => {
    const alone = await TestApp.start({ EVENTS_URL: 'nats://127.0.0.1:9' });
    const admin = await alone.setUp();
    const failing = async () =>
      (await admin.get('/events/relays')).body.relays.every(({ state }: Json) => state === 'failing');
    await vi.waitUntil(failing, { timeout: 15_000 });
    expect((await alone.anonymous.get('//health/ready')).status).toBe(200);
    await alone.close();
  });
});
