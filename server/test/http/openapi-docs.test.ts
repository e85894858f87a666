import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openApiDocument } from '../../src/http/openapi/openapi.ts';
import { routes } from '../../src/routes.gen.ts';
import { RawConnection, requestText } from '../support/raw-http.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const assets = ['/docs/start.js', '/docs/swagger-ui.css', '/docs/swagger-ui-bundle.js'];

describe('documentation', () => {
  let app: TestApp;

  beforeAll(async () => {
    app = await TestApp.start();
  });
  afterAll(() => app.close());

  const fromRoot = (path: string) => app.anonymous.get(`/${path}`);

  it('200: the OpenAPI document is open, and is the one made of the endpoints (RUN-8)', async () => {
    const { status, body, headers } = await app.anonymous.get('/openapi.json');
    expect(status).toBe(200);
    expect(body).toEqual(JSON.parse(JSON.stringify(openApiDocument(routes))));
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(headers.get('cache-control')).toBe('no-cache');
    expect(body.openapi).toBe('3.1.0');
  });

  it('200: the page and each of its files come from here (RUN-8)', async () => {
    const { status, text, headers } = await fromRoot('/docs');
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const named = [...text.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address]) => address ?? '');
    expect(
      named
        .filter((address) => address !== 'data:,')
        .map((address) => `/${address}`)
        .sort(),
    ).toEqual([...assets].sort());
    for (const address of assets) {
      const asset = await fromRoot(address);
      expect([address, asset.status]).toEqual([address, 200]);
      expect(asset.headers.get('content-type')).toMatch(address.endsWith('.css') ? /^text\/css/ : /^text\/javascript/);
      expect(asset.text.length).toBeGreaterThan(50);
    }
  });

  it.each(['/docs', ...assets])('%s may fetch from here alone', async (address) => {
    const { headers } = await fromRoot(address);
    const policy = headers.get('content-security-policy') ?? '';
    const directives = new Map(policy.split('; ').map((part) => [part.split(' ')[0], part.split(' ').slice(1)]));
    expect(directives.get('default-src')).toEqual(["'none'"]);
    for (const sources of directives.values()) {
      for (const source of sources) expect(["'none'", "'self'", "'unsafe-inline'", 'data:']).toContain(source);
    }
    expect(directives.get('script-src')).toEqual(["'self'"]);
    expect(directives.get('connect-src')).toEqual(["'self'"]);
    expect(directives.get('frame-ancestors')).toEqual(["'none'"]);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  });

  it('the page and its start script name no other host and hold no script inside the page', async () => {
    const texts = [(await fromRoot('/docs')).text, (await fromRoot('/docs/start.js')).text];
    for (const text of texts) expect(text).not.toMatch(/https?:|\/\/[a-z]/i);
    expect(texts[0]).not.toMatch(/<script>|onload=|<style/i);
    expect(texts[1]).toContain("url: 'api/v1/openapi.json'");
    expect(texts[1]).toContain('validatorUrl: null');
  });

  it('the viewer loads nothing from elsewhere', async () => {
    const { text } = await fromRoot('/docs/swagger-ui.css');
    const loaded = [...text.matchAll(/url\(["']?([^"')]*)/g)].map(([, address]) => address ?? '');
    expect(loaded.filter((address) => !address.startsWith('data:'))).toEqual([]);
    expect(text).not.toMatch(/@import/);
  });

  it.each([
    '/docs/../package.json',
    '/docs/%2e%2e/package.json',
    '/docs/package.json',
    '/docs/index.html',
    '/docs/swagger-ui.css.map',
  ])('404: %s, no other file is served', async (path) => {
    const connection = new RawConnection(app).send(requestText(`GET ${path} HTTP/1.1`));
    const { answers: responses } = await connection.until(({ answers: got }) => got.length > 0);
    connection.destroy();
    expect(responses[0]?.status).toBe(404);
  });

  it.each(['/', '/docs/'])('302: %s leads to the page', async (path) => {
    const connection = new RawConnection(app).send(requestText(`GET ${path} HTTP/1.1`));
    const { answers: responses } = await connection.until(({ answers: got }) => got.length > 0);
    connection.destroy();
    expect([responses[0]?.status, responses[0]?.headers['location']]).toEqual([302, '/docs']);
  });

  it.each(['/', '/docs', '/docs/', ...assets, '/api/v1/openapi.json'])('405: POST %s', async (path) => {
    const { status, headers } = await app.anonymous.post(`/${path}`);
    expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });
});

describe('/metrics (RUN-5)', () => {
  async function metricsOf(setting: string | undefined, headers: Record<string, string> = {}) {
    const app = await TestApp.start(setting === undefined ? {} : { METRICS: setting });
    const { status, text, headers: responded } = await app.anonymous.get('//metrics', { headers });
    await app.close();
    return { status, text, type: responded.get('content-type'), caching: responded.get('cache-control') };
  }

  it('200: METRICS=on on the main port', async () => {
    const { status, text, type, caching } = await metricsOf('on', { 'x-forwarded-for': '203.0.113.9' });
    expect([status, caching]).toEqual([200, 'no-store']);
    expect(type).toMatch(/^text\/plain/);
    expect(text).toContain('# TYPE latchkey_activity_total counter');
  });

  it.each([undefined, 'local', 'off'])(
    '404: METRICS=%s on the main port, to loopback peers too (FIT-55)',
    async (setting) => {
      const { status, text } = await metricsOf(setting);
      expect([status, JSON.parse(text).error.code]).toEqual([404, 'NOT_FOUND']);
    },
  );

  it('counts what was done, and names no one (AUDIT-2, FIT-142)', async () => {
    const app = await TestApp.start({ METRICS: 'on' });
    const admin: Client = await app.setUp();
    await admin.token();
    await admin.get(`/users/${admin.userId}`);
    await admin.get('/users/ada@example.com/nowhere');
    await app.anonymous.call('HEAD', '/users');
    await app.anonymous.call('LOCK', '/users');
    const { text } = await app.anonymous.get('//metrics');
    for (const requests of [
      'method="POST",route="/api/v1/org",status="2xx"',
      'method="GET",route="/api/v1/users/:id",status="2xx"',
      'method="GET",route="none",status="4xx"',
      'method="HEAD",route="/api/v1/users",status="4xx"',
      'method="LOCK",route="none",status="4xx"',
    ]) {
      expect(text).toContain(`latchkey_http_requests_total{${requests}} 1`);
    }
    expect(text).toContain('latchkey_http_request_duration_seconds_count{method="POST",route="/api/v1/org"} 1');
    expect(text).toContain('latchkey_activity_total{action="org.created"} 1');
    expect(text).toContain('latchkey_activity_total{action="token.created"} 1');
    expect(text).not.toMatch(/ada@|example|eyJ/);
    await app.close();
  });
});
