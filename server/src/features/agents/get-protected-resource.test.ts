import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestApp } from '../../../test/support/test-app.ts';
import { catalogue } from '../../access/scopes.ts';

const paths = ['//.well-known/oauth-protected-resource', '//.well-known/oauth-protected-resource/mcp'];

describe('GET /.well-known/oauth-protected-resource', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await TestApp.start({ BASE_URL: 'https://id.example.com/keys' });
  });
  afterAll(() => app.close());

  it.each(paths)(
    '200: %s says what the endpoint takes, before there is an organization (MCP-3, HTTP-7)',
    async (path) => {
      const { status, body, headers } = await app.anonymous.get(path);
      expect(status).toBe(200);
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(body).toEqual({
        resource: 'https://id.example.com/keys/mcp',
        resource_name: 'Latchkey',
        resource_documentation: 'https://id.example.com/keys/docs',
        bearer_methods_supported: ['header'],
        scopes_supported: catalogue.map(({ name }) => name),
      });
    },
  );

  it('401: the challenge of the endpoint leads there (MCP-3, ERR-14)', async () => {
    const { status, headers } = await app.anonymous.post('//mcp', { jsonrpc: '2.0', id: 1, method: 'ping' });
    const metadata = 'https://id.example.com/keys/.well-known/oauth-protected-resource/mcp';
    expect([status, headers.get('www-authenticate')]).toEqual([401, `Bearer resource_metadata="${metadata}"`]);
  });

  it('names only scopes that the instance grants (MCP-3, SCOPE-8)', async () => {
    const narrow = await TestApp.start({ MCP_SCOPES: 'user:read openid' });
    try {
      const { body } = await narrow.anonymous.get(paths[1] ?? '');
      expect(body.scopes_supported.sort()).toEqual(['openid', 'user:read']);
    } finally {
      await narrow.close();
    }
  });

  it.each([
    'oauth-authorization-server',
    'oauth-authorization-server/mcp',
    'openid-configuration',
    'oauth-protected-resource//',
    'oauth-protected-resource/api/v1/mcp',
    'anything/else',
    '',
    '%00',
  ])('404 in JSON: /.well-known/%s, which clients ask for on their own (MCP-3, ERR-1)', async (name) => {
    const { status, headers } = await app.anonymous.get(`//.well-known/${name}`);
    expect([status, headers.get('content-type')]).toEqual([404, 'application/json; charset=utf-8']);
  });
});
