import { join, resolve } from 'node:path';
import {
  Client as McpClient,
  StreamableHTTPClientTransport,
  type Transport,
  type VersionNegotiationMode,
} from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensureServerIsBuilt } from '../support/server-process.ts';
import { type Client, type Json, TestApp, type TokenClient } from '../support/test-app.ts';

const command = join(resolve(import.meta.dirname, '../../..'), 'dist/bin/latchkey.js');

let app: TestApp;
let admin: Client;
let token: TokenClient;

beforeAll(async () => {
  ensureServerIsBuilt();
  app = await TestApp.start();
  admin = await app.setUp();
  await app.member(admin, 'grace@example.com');
  token = await admin.token({ scopes: ['user:read', 'org:read', 'token:read'] });
}, 120_000);
afterAll(() => app.close());

function overHttp(credential: string): Transport {
  const headers = { authorization: `Bearer ${credential}` };
  return new StreamableHTTPClientTransport(new URL(`${app.url}/mcp`), { requestInit: { headers } });
}

function overStdio(credential: string): Transport {
  return new StdioClientTransport({
    command: process.execPath,
    args: [command, 'mcp', '--url', app.url],
    env: { PATH: process.env['PATH'] ?? '', LATCHKEY_TOKEN: credential },
    stderr: 'ignore',
  });
}

const newest = '2026-07-28';
const modes: readonly { readonly revision: string; readonly mode: VersionNegotiationMode }[] = [
  { revision: 'the older revision', mode: 'legacy' },
  { revision: newest, mode: { pin: newest } },
  { revision: 'whichever is newest', mode: 'auto' },
];
const ways = [
  { way: 'HTTP', open: overHttp },
  { way: 'latchkey mcp', open: overStdio },
].flatMap((one) => modes.map((other) => ({ ...one, ...other })));

describe.each(ways)('the official client over $way, in $revision', ({ open, mode }) => {
  const connect = async (credential = token.credential ?? ''): Promise<McpClient> => {
    const client = new McpClient({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    await client.connect(open(credential));
    return client;
  };
  const withClient = async (work: (client: McpClient) => Promise<void>, credential?: string): Promise<void> => {
    const client = await connect(credential);
    try {
      await work(client);
    } finally {
      await client.close();
    }
  };

  it('agrees on the revision, and knows whom it talks with (MCP-1, MCP-14, CLI-1)', () =>
    withClient(async (client) => {
      expect(client.getServerVersion()).toMatchObject({ name: 'latchkey', title: 'Latchkey' });
      const version = client.getNegotiatedProtocolVersion();
      expect(version).toBe(mode === 'legacy' ? '2025-11-25' : newest);
    }));

  it('lists what the token allows, and calls it with the answer of the route (MCP-8, MCP-9, MCP-11)', () =>
    withClient(async (client) => {
      const { tools } = await client.listTools();
      const names = tools.map(({ name }) => name);
      expect(names).toEqual(expect.arrayContaining(['whoami', 'explain_access', 'list_users', 'revoke_my_token']));
      expect(names).not.toContain('create_user');
      const listUsers = tools.find(({ name }) => name === 'list_users');
      expect(listUsers?.annotations).toMatchObject({ readOnlyHint: true, destructiveHint: false });
      const called = await client.callTool({ name: 'list_users', arguments: { page: 1, limit: 2 } });
      expect(called.structuredContent).toEqual((await token.get('/users?page=1&limit=2')).body);
    }));

  it('reads resources and gets prompts, names beyond ASCII among the arguments (MCP-13)', () =>
    withClient(async (client) => {
      const { contents } = await client.readResource({ uri: 'latchkey://me' });
      const [content] = contents;
      expect(JSON.parse(String(content && 'text' in content && content.text))).toEqual(
        (await token.get('/whoami')).body,
      );
      const got = await client.getPrompt({ name: 'offboard_person', arguments: { email: 'Grâce@exämple.com' } });
      expect(JSON.stringify(got.messages)).toContain('Grâce@exämple.com');
      await expect(client.getPrompt({ name: 'sûrely_not' })).rejects.toThrow('Unknown prompt: sûrely_not');
      await expect(client.callTool({ name: 'nö_such_tool', arguments: {} })).rejects.toThrow('nö_such_tool');
    }));

  it('gets each of fifty answers at once, to its own question (MCP-1, MCP-15)', () =>
    withClient(async (client) => {
      const { users } = (await token.get('/users?page=1&limit=2')).body;
      const asked: string[] = Array.from({ length: 50 }, (_, index) => users[index % 2]._id);
      const responses = await Promise.all(asked.map((id) => client.callTool({ name: 'get_user', arguments: { id } })));
      expect(responses.map(({ structuredContent }: Json) => structuredContent._id)).toEqual(asked);
    }));

  it('is told of a refusal as a result, and of a token that ends as an error (MCP-7, MCP-10)', async () => {
    const { credential } = await admin.token({ scopes: ['org:read'] });
    await withClient(async (client) => {
      const refused = await client.callTool({ name: 'delete_user', arguments: { id: admin.userId } });
      expect(refused.isError).toBe(true);
      expect(JSON.stringify(refused.content)).toContain('user:delete');
      const revoked = await client.callTool({ name: 'revoke_my_token', arguments: {} });
      expect(revoked.isError).not.toBe(true);
      await expect(client.callTool({ name: 'whoami', arguments: {} })).rejects.toThrow('revoked');
    }, credential ?? '');
  });

  it('does not connect with what is no token (MCP-2, MCP-3)', async () => {
    await expect(connect('no-token')).rejects.toThrow(/The token is not valid|HTTP 401|closed/);
  });
});
