import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { isWhole } from '../support/effort.ts';
import { ensureServerIsBuilt } from '../support/server-process.ts';
import { type Client, type Json, TestApp, type TokenClient } from '../support/test-app.ts';
import { ensureOutsideClients, installMsMax, runOutside } from './outside-client.ts';

vi.setConfig({ testTimeout: 120_000 });

const inspector = '@modelcontextprotocol/inspector/clients/launcher/build/index.js';
const command = join(resolve(import.meta.dirname, '../../..'), 'dist/bin/latchkey.js');

let app: TestApp;
let admin: Client;
let token: TokenClient;

beforeAll(async () => {
  ensureServerIsBuilt();
  ensureOutsideClients();
  app = await TestApp.start();
  admin = await app.setUp();
  await app.member(admin, 'grace@example.com');
  token = await admin.token({ scopes: ['user:read', 'org:read'] });
}, installMsMax);
afterAll(() => app.close());

type Way = 'HTTP' | 'standard input and output';

interface Road {
  readonly way: Way;
  readonly era: 'legacy' | 'modern';
}

/** Runs the inspector against the instance, as at a terminal. */
async function inspect({ way, era }: Road, args: readonly string[], credential = token.credential ?? '') {
  const common = ['--cli', '--format', 'json', '--protocol-era', era, ...args];
  const target =
    way === 'HTTP'
      ? ['--transport', 'http', '--server-url', `${app.url}/mcp`, '--header', `Authorization: Bearer ${credential}`]
      : ['-e', `LATCHKEY_TOKEN=${credential}`, process.execPath, command, 'mcp', '--url', app.url];
  return runOutside(inspector, [...common, ...target]);
}

async function result(road: Road, ...args: string[]): Promise<Json> {
  const { code, stdout, stderr } = await inspect(road, args);
  if (code !== 0) throw new Error(`the inspector ended with ${code}: ${stderr}`);
  return JSON.parse(stdout).result;
}

const roads: readonly Road[] = [
  { way: 'HTTP', era: 'legacy' },
  { way: 'HTTP', era: 'modern' },
  { way: 'standard input and output', era: 'legacy' },
  { way: 'standard input and output', era: 'modern' },
];
/** One run has both ways and both revisions; `npm run test:all` each of the four. */
const driven = isWhole ? roads : roads.slice(1, 3);

describe.each(driven)('@modelcontextprotocol/inspector over $way, $era revision', (road) => {
  it('lists the tools that the token allows, without errors in their schemas (MCP-8, MCP-14, MCP-15)', async () => {
    const { tools } = await result(road, '--method', 'tools/list', '--strict');
    const { body } = await token.get('/access?tools=true');
    const allowed = body.operations.filter((one: Json) => one.allowed).map((one: Json) => one.tool);
    expect(tools.map((tool: Json) => tool.name).sort()).toEqual(allowed.sort());
    expect(allowed).toContain('list_users');
    expect(allowed).not.toContain('delete_user');
  });

  it('calls a tool, and gets what the route answers (MCP-9)', async () => {
    const args = ['--method', 'tools/call', '--tool-name', 'list_users', '--tool-args-json', '{"page":1,"limit":1}'];
    const { structuredContent } = await result(road, ...args);
    expect(structuredContent).toEqual((await token.get('/users?page=1&limit=1')).body);
  });

  it('reads resources and gets prompts (MCP-13)', async () => {
    const { resources } = await result(road, '--method', 'resources/list');
    expect(resources.map(({ uri }: Json) => uri)).toEqual(['latchkey://organization', 'latchkey://me']);
    const { contents } = await result(road, '--method', 'resources/read', '--uri', 'latchkey://organization');
    expect(JSON.parse(contents[0].text)).toEqual((await token.get('/org')).body);
    const { prompts } = await result(road, '--method', 'prompts/list');
    expect(prompts.map(({ name }: Json) => name)).toEqual(['review_tokens', 'offboard_person']);
    const got = [
      '--method',
      'prompts/get',
      '--prompt-name',
      'offboard_person',
      '--prompt-args',
      'email=grace@example.com',
    ];
    expect((await result(road, ...got)).messages[0].content.text).toContain('"grace@example.com"');
  });

  it('is told of a refusal, and that a token is none (MCP-10)', async () => {
    const args = ['--method', 'tools/call', '--tool-name', 'get_user'];
    const refused = await inspect(road, [...args, '--tool-args-json', '{"id":"0123456789abcdef01234567"}']);
    expect(JSON.parse(refused.stdout).result).toMatchObject({ isError: true });
    expect(refused.stdout).toContain('NOT_FOUND');
    expect(refused.code).not.toBe(0);
    const stranger = await inspect(road, ['--method', 'tools/list', '--stored-auth-only'], 'no-token');
    expect(stranger.code).not.toBe(0);
    expect(stranger.stdout).toBe('');
  });
});
