import { once } from 'node:events';
import { request } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import pino from 'pino';
import { describe, expect, it } from 'vitest';
import { freePort } from '../../../harness/processes.ts';
import { createMetrics } from './metrics.ts';
import { openMetricsListener } from './metrics-listener.ts';

async function opened(port: number, isOn = () => true) {
  const lines: string[] = [];
  const log = pino({ base: null }, { write: (line) => void lines.push(line) });
  const listener = await openMetricsListener({ port, isOn, metrics: createMetrics(), log });
  return { listener, logged: () => lines.map((line) => JSON.parse(line)) };
}

function statusOf(url: string, { method = 'GET', host }: { method?: string; host?: string } = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, ...(host === undefined ? {} : { headers: { host } }) }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0));
    });
    sent.once('error', reject).end();
  });
}

describe('the listener of metrics (RUN-5, FIT-55)', () => {
  it('200: at a port of its own, for this machine', async () => {
    let isOn = true;
    const { listener } = await opened(await freePort(), () => isOn);
    const url = listener.address ?? '';
    const response = await fetch(url);
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
    expect(await response.text()).toContain('# TYPE latchkey_activity_total counter');
    expect(await statusOf(url, { method: 'HEAD' })).toBe(200);
    expect(await statusOf(url, { method: 'POST' })).toBe(405);
    expect(await statusOf(url.replace('/metrics', '/'))).toBe(404);
    // A page elsewhere whose name was made to lead here.
    expect(await statusOf(url, { host: 'evil.example' })).toBe(404);
    isOn = false;
    expect(await statusOf(url)).toBe(404);
    await listener.close();
    await expect(fetch(url)).rejects.toThrow('fetch failed');
  });

  it('a port that is taken is a warning, and 0 is none (FIT-56)', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const { listener, logged } = await opened(port);
    expect(listener.address).toBeNull();
    expect(logged()).toMatchObject([{ level: 40, port, code: 'EADDRINUSE' }]);
    await listener.close();
    taken.close();
    const none = await opened(0);
    expect([none.listener.address, none.logged()]).toEqual([null, []]);
    await none.listener.close();
  });
});
