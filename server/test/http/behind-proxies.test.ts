import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { Agent, request } from 'node:https';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { certificate } from '../../../harness/broker-program.ts';
import { endEverything } from '../../../harness/processes.ts';
import { type ReverseProxy, startReverseProxy } from '../../../harness/reverse-proxy.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const page = 'https://console.example';
const base = 'https://id.example/auth';

interface Call {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent in pieces, without a length. */
  readonly pieces?: readonly string[];
}

interface Got {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

describe.each(['nginx', 'caddy'] as const)('below a path, with %s and TLS in front', (kind) => {
  let app: TestApp;
  let admin: Client;
  let proxy: ReverseProxy;
  const agent = new Agent({ ca: certificate.text, keepAlive: false });

  beforeAll(async () => {
    app = await TestApp.start({ BASE_URL: base, FRONTEND_URL: page, TRUST_PROXY: '127.0.0.1' });
    admin = await app.setUp();
    proxy = await startReverseProxy(kind, { port: Number(new URL(app.url).port), path: '/auth' });
  });
  afterAll(async () => {
    await proxy.close();
    await app.close();
    await endEverything();
  });

  async function call(url: string, { method = 'GET', headers = {}, pieces = [] }: Call = {}): Promise<Got> {
    const sent = request(url, { method, agent, headers });
    const arrived = once(sent, 'response');
    // A proxy may close while the body is on its way: the response is what counts.
    sent.on('error', () => {});
    for (const piece of pieces) sent.write(piece);
    sent.end();
    const [response] = await arrived;
    return { status: response.statusCode, headers: response.headers, text: await text(response) };
  }

  describe.each(['stripped', 'kept'] as const)('the path is %s', (how) => {
    const at = (path: string) => proxy[how] + path;

    it('the documentation and its files (FIT-50)', async () => {
      expect((await call(at('/'))).headers['location']).toBe('/auth/docs');
      expect((await call(at('/docs/'))).headers['location']).toBe('/auth/docs');
      const docs = await call(at('/docs'));
      const named = [...docs.text.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address = '']) => address);
      const files = named.filter((address) => !address.startsWith('data:'));
      expect(files).toHaveLength(3);
      for (const file of files) expect((await call(new URL(file, at('/docs')).href)).status).toBe(200);
      const { servers } = JSON.parse((await call(at('/api/v1/openapi.json'))).text);
      expect(servers).toEqual([{ url: '/auth' }]);
    });

    it('pages behind links, routes with a slash at the end, and those of agents (FIT-40, FIT-50)', async () => {
      for (const name of ['reset-password', 'confirm-email']) {
        const { text: html } = await call(at(`/${name}`));
        const script = /src="([^"]+)"/.exec(html)?.[1] ?? '';
        expect((await call(new URL(script, at(`/${name}`)).href)).status).toBe(200);
        expect((await call(at(`/${name}/`))).headers['location']).toBe(`/auth/${name}`);
      }
      const headers = { authorization: `Bearer ${admin.credential}` };
      expect((await call(at('/api/v1/org/'), { headers })).status).toBe(200);
      const { status, headers: given } = await call(at('/mcp/'), { method: 'POST' });
      expect(status).toBe(401);
      expect(given['www-authenticate']).toContain(`"${base}/.well-known/oauth-protected-resource/mcp"`);
      const metadata = await call(at('/.well-known/oauth-protected-resource/mcp'));
      expect(JSON.parse(metadata.text).resource).toBe(`${base}/mcp`);
    });

    it('an early refusal of a body in pieces arrives, with its headers (FIT-42 to FIT-44)', async () => {
      const pieces = Array.from({ length: 40 }, () => 'x'.repeat(65_536));
      const authorized = { authorization: `Bearer ${admin.credential}`, 'content-type': 'application/json' };
      // nginx announces the length: without a version it asks by HTTP/1.0, which has no pieces. Size comes before credential.
      for (const [headers, expected] of [
        [{}, kind === 'nginx' ? 413 : 401],
        [authorized, 413],
      ] as const) {
        const given = { ...headers, origin: page };
        const got = await call(at('/api/v1/users'), { method: 'POST', headers: given, pieces });
        expect([got.status, got.headers['access-control-allow-origin']]).toEqual([expected, page]);
        expect(got.headers['strict-transport-security']).toBe('max-age=31536000');
      }
    });
  });

  it('the client that the proxy names counts (CONFIG-16)', async () => {
    const headers = { authorization: `Bearer ${admin.credential}`, 'content-type': 'application/json' };
    const forwarded = { ...headers, 'x-forwarded-for': '203.0.113.9:4711' };
    const body = ['{"name":"x"}'];
    const { status } = await call(`${proxy.kept}/api/v1/personal-access-tokens`, {
      method: 'POST',
      headers: forwarded,
      pieces: body,
    });
    expect(status).toBe(201);
    // caddy believes no client, nginx adds the address that it sees itself.
    expect((await app.audit()).at(-1).network).toBe(kind === 'nginx' ? '203.0.113.9' : '127.0.0.1');
  });
});
