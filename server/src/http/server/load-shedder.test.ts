import { Agent, request } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { watchStatements } from '../../../test/support/statement-watch.ts';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

const crowd = 70;
/** Makes the whole crowd take more than twice the time that a request may wait. */
const statementMs = 70;

interface Outcome {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: string;
}

describe('more requests than can be answered', () => {
  let app: TestApp;
  let admin: Client;
  let agent: Agent;
  let stopWatching: (() => void) | undefined;

  beforeAll(async () => {
    // The embedded store works on the event loop itself, so that a slow one holds it up.
    app = await TestApp.start({ DATABASE_URL: '', RATE_LIMIT: 'on' }, undefined, { waitMsMax: 1_250 });
    admin = await app.setUp();
  });
  afterAll(() => app.close());
  beforeEach(() => {
    agent = new Agent({ keepAlive: true });
  });
  afterEach(() => {
    stopWatching?.();
    stopWatching = undefined;
    agent.destroy();
  });

  function slowDown(): void {
    const sleeper = new Int32Array(new SharedArrayBuffer(4));
    stopWatching = watchStatements((sql) => {
      if (/from "organizations"/.test(sql)) Atomics.wait(sleeper, 0, 0, statementMs);
    });
  }

  const ask = (path = '/api/v1/org') =>
    new Promise<Outcome>((resolve, reject) => {
      const headers = { authorization: `Bearer ${admin.credential}` };
      const sent = request(`${app.url}${path}`, { agent, headers }, (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (text: string) => {
          body += text;
        });
        response.once('end', () =>
          resolve({ status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'], body }),
        );
      });
      sent.once('error', reject).end();
    });
  const askAll = () => Promise.all(Array.from({ length: crowd }, () => ask()));
  const of = (outcomes: readonly Outcome[], status: number) => outcomes.filter((one) => one.status === status);

  function expectShed(outcomes: readonly Outcome[]): void {
    const [good, refused] = [of(outcomes, 200), of(outcomes, 503)];
    expect(good.length + refused.length).toBe(crowd);
    expect(good.length).toBeGreaterThan(0);
    expect(refused.length).toBeGreaterThan(0);
    for (const { retryAfter, body } of refused) {
      expect([retryAfter, JSON.parse(body).error.code]).toEqual(['1', 'UNAVAILABLE']);
    }
  }

  it('503: those on open connections that have waited for more than two and a half seconds, and all is well at once (HTTP-31, ERR-27)', async () => {
    expect(of(await askAll(), 200)).toHaveLength(crowd);
    slowDown();
    expectShed(await askAll());
    stopWatching?.();
    expect(of(await askAll(), 200)).toHaveLength(crowd);
    expect(app.logLines.filter((line) => line.includes('overload: requests rejected')).length).toBeGreaterThan(0);
  });

  it('503: those on new connections that have waited for longer than they may (HTTP-31, ERR-27)', async () => {
    slowDown();
    expectShed(await askAll());
    stopWatching?.();
    expect((await ask()).status).toBe(200);
  });

  it('200: /health/live and /health/ready, however much there is to do (HTTP-31, RUN-4)', async () => {
    slowDown();
    const asked = askAll();
    const health = await Promise.all(Array.from({ length: 10 }, () => ask('/health/live')));
    expect(of(health, 200)).toHaveLength(10);
    await asked;
  });
});
