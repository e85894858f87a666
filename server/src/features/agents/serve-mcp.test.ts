import { Client as McpClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  ask,
  askNewest,
  callTool,
  codeOf,
  earlier,
  newest,
  newestRequest,
  send,
  toolNames,
} from '../../../test/support/agents.ts';
import { type Client, type Json, TestApp, type TokenClient } from '../../../test/support/test-app.ts';
import { release } from '../../base/release.gen.ts';

const earlierRevisions = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
const initialize = (protocolVersion: string) => ({
  jsonrpc: '2.0',
  id: 'first',
  method: 'initialize',
  params: { protocolVersion, capabilities: {}, clientInfo: { name: 'tests', version: '1' } },
});
const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

describe('POST /mcp', () => {
  let app: TestApp;
  let admin: Client;
  let agent: TokenClient;

  beforeAll(async () => {
    app = await TestApp.start({ CORS_ORIGINS: 'https://tool.example' });
    admin = await app.setUp();
    agent = await admin.token();
  });
  afterAll(() => app.close());

  it('200: JSON for JSON-RPC, at both addresses, without a session (MCP-1, ERR-1)', async () => {
    for (const path of ['//mcp', '/mcp']) {
      const { status, body, headers } = await send(agent, list, { path });
      expect([status, body.jsonrpc, body.id, body.result.tools.length > 30]).toEqual([200, '2.0', 1, true]);
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.has('mcp-session-id')).toBe(false);
    }
  });

  it('200: a token, with and without its display prefix, and a session (MCP-2)', async () => {
    const bare = agent.credential?.replace(/^lkpat_/, '') ?? '';
    expect(bare.startsWith('ey')).toBe(true);
    const responses = await Promise.all([agent, app.with(bare), admin].map((client) => callTool(client, 'whoami')));
    expect(responses.map(({ structuredContent }) => structuredContent.credential.kind)).toEqual([
      'token',
      'token',
      'session',
    ]);
    expect(responses[1]).toEqual(responses[0]);
  });

  it('200: every revision there is, each by itself, with the release (MCP-14, FIT-100)', async () => {
    for (const version of earlierRevisions) {
      const { body } = await send(agent, initialize(version));
      expect([body.id, body.result.protocolVersion, body.result.serverInfo.name]).toEqual([
        'first',
        version,
        'latchkey',
      ]);
      expect(body.result.capabilities).toEqual({ tools: {}, resources: {}, prompts: {} });
      expect(body.result.serverInfo.version).toBe(release);
      const headers = { 'mcp-protocol-version': version };
      const listed = await send(agent, list, { headers });
      expect([listed.status, listed.body.result.tools.length > 30]).toEqual([200, true]);
      expect((await send(agent, { jsonrpc: '2.0', id: 2, method: 'ping' }, { headers })).body).toEqual({
        jsonrpc: '2.0',
        id: 2,
        result: {},
      });
    }
    expect((await send(agent, initialize('1999-01-01'))).body.result.protocolVersion).toBe(earlier);
    const { status, body } = await askNewest(agent, 'server/discover');
    expect([status, body.result.supportedVersions]).toEqual([200, [newest]]);
    const called = await askNewest(agent, 'tools/call', { name: 'whoami', arguments: {} });
    expect([called.status, called.body.result.structuredContent.userId]).toEqual([200, admin.userId]);
    expect(called.headers.get('content-type')).toMatch(/^application\/json/);
  });

  it('200: the official client, which no one here wrote (MCP-1, MCP-14)', async () => {
    for (const version of [earlier, newest]) {
      const client = new McpClient(
        { name: 'tests', version: '1' },
        { versionNegotiation: { mode: version === newest ? { pin: newest } : 'legacy' } },
      );
      const requestInit = { headers: { authorization: `Bearer ${agent.credential}` } };
      await client.connect(new StreamableHTTPClientTransport(new URL(`${app.url}/mcp`), { requestInit }));
      expect(client.getNegotiatedProtocolVersion()).toBe(version);
      expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(await toolNames(agent));
      const { structuredContent } = (await client.callTool({
        name: 'get_user',
        arguments: { id: admin.userId },
      })) as Json;
      expect(structuredContent.email).toBe('ada@example.com');
      expect((await client.listResources()).resources).toHaveLength(2);
      await client.close();
    }
  });

  it.each(['GET', 'DELETE', 'PUT', 'PATCH', 'OPTIONS', 'HEAD'])('405: %s (MCP-4)', async (method) => {
    for (const path of ['//mcp', '/mcp']) {
      const { status, headers } = await agent.call(method, path, { headers: { accept: 'text/event-stream' } });
      expect([status, headers.get('allow')]).toEqual([405, 'POST']);
    }
  });

  it.each(['text/event-stream', 'text/html', 'application/jsontext/event-strea', 'application/json2', 'text/*'])(
    '406: Accept: %s (MCP-4)',
    async (accept) => {
      for (const headers of [{ 'mcp-protocol-version': earlier }, { 'mcp-protocol-version': newest }]) {
        const { status, body } = await agent.post('//mcp', list, { headers: { ...headers, accept } });
        expect([status, body.id, body.error.code]).toEqual([406, null, -32_000]);
      }
    },
  );

  it.each([undefined, '', '*/*', 'application/json', 'text/html, application/*;q=0.8', 'Application/JSON;q=1'])(
    '200 in JSON: Accept: %s, as nothing else is ever answered (FIT-41)',
    async (accept) => {
      const { message, headers: ofNewest } = newestRequest('tools/list');
      // A client that says nothing takes anything, which fetch says for it.
      const given = accept === undefined ? {} : { accept };
      const answers = await Promise.all([
        agent.post('//mcp', message, { headers: { ...ofNewest, ...given } }),
        agent.post('//mcp/', list, { headers: { 'mcp-protocol-version': earlier, ...given } }),
      ]);
      for (const { status, headers, body } of answers) {
        expect([status, headers.get('content-type')?.split(';')[0]]).toEqual([200, 'application/json']);
        expect(body.result.tools.length).toBeGreaterThan(0);
      }
    },
  );

  it('200: Accept in any case, with weights, in any order (MCP-4)', async () => {
    for (const accept of [
      'text/event-stream;q=0.5, Application/JSON',
      'application/json;q=1.0,text/event-stream, */*',
    ]) {
      expect((await agent.post('//mcp', list, { headers: { accept } })).status).toBe(200);
    }
  });

  it.each([
    'https://evil.example',
    'null',
    'https://tool.example.evil',
    'http://tool.example',
    'https://tool.example:444',
    '',
  ])('403: Origin: %s, and nothing happens (MCP-4)', async (origin) => {
    const message = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'update_organization', arguments: { shortName: 'Evil' } },
    };
    const { status, body, headers } = await send(agent, message, { headers: { origin } });
    expect([status, body.error.code, body.error.data.code]).toEqual([403, -32_000, 'FORBIDDEN']);
    expect(headers.has('access-control-allow-origin')).toBe(false);
    expect((await admin.get('/org')).body.shortName).not.toBe('Evil');
  });

  it('200: pages of our own and of CORS_ORIGINS, which browsers let through (MCP-4, HTTP-22)', async () => {
    const own = new URL(app.services.config.baseUrl).origin;
    for (const origin of [own, 'https://tool.example'])
      expect((await send(agent, list, { headers: { origin } })).status).toBe(200);
    const asked = { origin: 'https://tool.example', 'access-control-request-method': 'POST' };
    const headers = { ...asked, 'access-control-request-headers': 'authorization,content-type,mcp-protocol-version' };
    const preflight = await app.anonymous.call('OPTIONS', '//mcp', { headers });
    expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([
      204,
      'https://tool.example',
    ]);
    expect(preflight.headers.get('access-control-allow-headers')).toContain('mcp-protocol-version');
  });

  it('202: what asks for nothing, without a body (MCP-1)', async () => {
    const quiet = [
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
      { jsonrpc: '2.0', method: 'notifications/unheard-of', params: {} },
      { jsonrpc: '2.0', id: 7, result: {} },
      { jsonrpc: '2.0', id: 7, error: { code: 1, message: 'no' } },
      [
        { jsonrpc: '2.0', method: 'notifications/initialized' },
        { jsonrpc: '2.0', id: 7, result: {} },
      ],
    ];
    for (const message of quiet) {
      const { status, text, headers } = await send(agent, message);
      expect([status, text, headers.get('content-type')]).toEqual([202, '', null]);
    }
  });

  it('resources are what their tools answer, and only those that are allowed are listed (MCP-13)', async () => {
    const { result } = await ask(agent, 'resources/list');
    expect(result.resources.map(({ uri }: Json) => uri)).toEqual(['latchkey://organization', 'latchkey://me']);
    const { contents } = (await ask(agent, 'resources/read', { uri: 'latchkey://organization' })).result;
    expect(contents[0].mimeType).toBe('application/json');
    expect(JSON.parse(contents[0].text)).toEqual((await admin.get('/org')).body);
    const narrow = await admin.token({ scopes: ['openid'] });
    expect((await ask(narrow, 'resources/list')).result.resources.map(({ uri }: Json) => uri)).toEqual([
      'latchkey://me',
    ]);
    const refused = await ask(narrow, 'resources/read', { uri: 'latchkey://organization' });
    expect(refused.error.message).toContain('Insufficient scope. Required: org:read');
    const unknown = await ask(agent, 'resources/read', { uri: 'latchkey://nothing' });
    expect([-32_002, -32_602]).toContain(unknown.error.code);
    expect((await ask(agent, 'resources/templates/list')).result).toEqual({ resourceTemplates: [] });
  });

  it('prompts are listed and filled in; what is missing, too long or unknown is told (MCP-13)', async () => {
    const { prompts } = (await ask(agent, 'prompts/list')).result;
    expect(prompts.map(({ name }: Json) => name)).toEqual(['review_tokens', 'offboard_person']);
    const { messages } = (
      await ask(agent, 'prompts/get', { name: 'offboard_person', arguments: { email: 'a"b@x.io' } })
    ).result;
    expect(messages[0].content.text).toContain(JSON.stringify('a"b@x.io'));
    const days = (await ask(agent, 'prompts/get', { name: 'review_tokens', arguments: { unusedDays: '7' } })).result;
    expect(days.messages[0].content.text).toContain('for 7 days');
    // Every tool that they speak of is there.
    const names = new Set(await toolNames(agent));
    const spoken =
      `${messages[0].content.text} ${days.messages[0].content.text}`.match(/\b[a-z]+(?:_[a-z]+)+\b/g) ?? [];
    expect(spoken.filter((name: string) => !names.has(name))).toEqual([]);
    for (const wrong of [
      { name: 'offboard_person' },
      { name: 'nope' },
      { name: 'review_tokens', arguments: { unusedDays: 'x'.repeat(301) } },
    ]) {
      expect((await ask(agent, 'prompts/get', wrong)).error.code).toBe(-32_602);
    }
  });

  it('nothing is held: a call needs no greeting, and ids may be used again (MCP-1, MCP-14)', async () => {
    for (const id of [1, 1, 'one', 'one', 0, -1, '', 'x'.repeat(10_000)]) {
      const { body } = await send(agent, { jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'whoami' } });
      expect([body.id, body.result.structuredContent.userId]).toEqual([id, admin.userId]);
    }
  });

  it('a token revoked, and a role lost, between list and call, is felt by the call (MCP-9, SCOPE-1)', async () => {
    const other = await app.member(admin, 'grace@example.com');
    await app.promote(other.userId);
    const token = await other.token();
    expect(await toolNames(token)).toContain('list_all_tokens');
    await app.demote(other.userId);
    expect(codeOf(await callTool(token, 'list_all_tokens'))).toBe('ADMIN_REQUIRED');
    expect(await toolNames(token)).not.toContain('list_all_tokens');
    await admin.delete(`/personal-access-tokens/admin/${token.tokenId}`);
    const { status, body } = await send(token, list);
    expect([status, body.error.data.code]).toEqual([401, 'TOKEN_REVOKED']);
  });
});
