import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { requestCounts } from './request-counts.ts';

const text = async (registry: Registry) => (await registry.metrics()).split('\n');

describe('counts of requests (FIT-142)', () => {
  it('are shown by method, route and class, and by duration', async () => {
    const registry = new Registry();
    const count = requestCounts(registry);
    const get = { method: 'GET', route: '/api/v1/users/:id' };
    count(get, { status: 200, ms: 5 });
    count(get, { status: 204, ms: 6 });
    count(get, { status: 404, ms: 20_000 });
    count({ method: 'POST', route: '/api/v1/users' }, { status: 500, ms: 0 });
    for (const _ of [1, 2]) {
      const lines = await text(registry);
      expect(lines.filter((line) => line.startsWith('latchkey_http_requests_total{'))).toEqual([
        'latchkey_http_requests_total{method="GET",route="/api/v1/users/:id",status="2xx"} 2',
        'latchkey_http_requests_total{method="GET",route="/api/v1/users/:id",status="4xx"} 1',
        'latchkey_http_requests_total{method="POST",route="/api/v1/users",status="5xx"} 1',
      ]);
      const name = 'latchkey_http_request_duration_seconds';
      expect(lines).toContain(`# TYPE ${name} histogram`);
      const of = 'method="GET",route="/api/v1/users/:id"';
      expect(lines.filter((line) => line.startsWith(name) && line.includes(of))).toEqual([
        `${name}_bucket{le="0.005",${of}} 1`,
        ...['0.01', '0.025', '0.05', '0.1', '0.25', '0.5', '1', '2.5', '5', '10'].map(
          (le) => `${name}_bucket{le="${le}",${of}} 2`,
        ),
        `${name}_bucket{le="+Inf",${of}} 3`,
        `${name}_sum{${of}} 20.011`,
        `${name}_count{${of}} 3`,
      ]);
    }
  });

  it('have no label that a caller chose', async () => {
    const registry = new Registry();
    const count = requestCounts(registry);
    count({ method: 'PROPFIND', route: undefined }, { status: 404, ms: 1 });
    for (const method of ['NOSUCH', 'NONE', 'constructor']) count({ method, route: undefined }, { status: 404, ms: 1 });
    const lines = await text(registry);
    expect(lines.filter((line) => line.startsWith('latchkey_http_requests_total{'))).toEqual([
      'latchkey_http_requests_total{method="PROPFIND",route="none",status="4xx"} 1',
      'latchkey_http_requests_total{method="other",route="none",status="4xx"} 3',
    ]);
  });
});
