import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ensureServerIsBuilt } from '../../server/test/support/server-process.ts';
import { type Client, type Json, TestApp, type TokenClient } from '../../server/test/support/test-app.ts';
import { root } from './command-process.ts';
import { McpProcess } from './mcp-process.ts';

vi.setConfig({ testTimeout: 60_000 });

let app: TestApp;
let admin: Client;
let token: TokenClient;
let raw: string;
let directory: string;

beforeAll(async () => {
  ensureServerIsBuilt();
  app = await TestApp.start();
  admin = await app.setUp();
  token = await admin.token({ scopes: ['user:read'] });
  raw = token.credential ?? '';
  directory = mkdtempSync(join(tmpdir(), 'latchkey-mcp-'));
}, 120_000);
afterAll(async () => {
  rmSync(directory, { recursive: true, force: true });
  await app.close();
});

const initialize = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } };

function file(name: string, content: string): string {
  const path = join(directory, name);
  writeFileSync(path, content);
  return path;
}

/** Returns the owner of the token that a command found. */
async function tokenIdOf(args: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<string> {
  const bridge = new McpProcess(args, environment);
  bridge.request(1, 'tools/call', { name: 'whoami', arguments: {} });
  const { result } = await bridge.answer(1);
  expect(await bridge.finish()).toEqual({ code: 0, signal: null, stderr: '' });
  return result.structuredContent.credential.tokenId;
}

describe('latchkey mcp', () => {
  it('0: passes messages on and back, and prints nothing but the protocol (MCP-15, CLI-1)', async () => {
    const bridge = new McpProcess(['--url', app.url], { LATCHKEY_TOKEN: raw });
    bridge.request('first', 'initialize', initialize);
    expect((await bridge.answer('first')).result).toMatchObject({
      protocolVersion: '2025-06-18',
      serverInfo: { name: 'latchkey' },
    });
    bridge.write({ jsonrpc: '2.0', method: 'notifications/initialized' });
    bridge.request(2, 'tools/list');
    bridge.request(3, 'tools/call', { name: 'no_such_tool', arguments: {} });
    bridge.request(4, 'tools/call', { name: 'delete_user', arguments: { id: admin.userId } });
    bridge.request(5, 'no/such/method');
    const direct = async (method: string, params: Json = {}) =>
      (
        await token.post(
          '//mcp',
          { jsonrpc: '2.0', id: 2, method, params },
          { headers: { accept: 'application/json, text/event-stream' } },
        )
      ).body;
    expect(await bridge.answer(2)).toEqual(await direct('tools/list'));
    expect((await bridge.answer(3)).error).toEqual({ code: -32_602, message: 'Unknown tool: no_such_tool' });
    expect((await bridge.answer(4)).result.isError).toBe(true);
    expect((await bridge.answer(5)).error.code).toBe(-32_601);
    expect(await bridge.finish()).toEqual({ code: 0, signal: null, stderr: '' });
    expect(bridge.lines).toHaveLength(5);
  });

  it('answers all that was asked before the end of the input, and ends (MCP-15)', async () => {
    const bridge = new McpProcess(['--url', app.url], { LATCHKEY_TOKEN: raw });
    const ids = Array.from({ length: 40 }, (_, index) => index);
    for (const id of ids) bridge.request(id, 'tools/call', { name: 'whoami', arguments: {} });
    expect(await bridge.finish()).toMatchObject({ code: 0, stderr: '' });
    expect(bridge.messages.map(({ id }) => id).sort((a, b) => a - b)).toEqual(ids);
    expect(bridge.messages.every(({ result }) => result.structuredContent.userId === admin.userId)).toBe(true);
  });

  it('answers what is no message with an error, and goes on (MCP-15)', async () => {
    const bridge = new McpProcess(['--url', app.url], { LATCHKEY_TOKEN: raw });
    for (const line of ['not JSON', '', '[]', '{"jsonrpc":"1.0","id":1,"method":"ping"}', '{"id":2}'])
      bridge.write(line);
    bridge.request(3, 'ping');
    expect(await bridge.answer(3)).toEqual({ jsonrpc: '2.0', id: 3, result: {} });
    expect(await bridge.finish()).toMatchObject({ code: 0, stderr: '' });
    const errors = bridge.messages.filter(({ error }) => error);
    expect(errors.map(({ error }) => error.code)).toEqual([-32_600, -32_600, -32_600]);
  });

  it('1: ends at a message that is too long to be read (MCP-15)', async () => {
    const bridge = new McpProcess(['--url', app.url], { LATCHKEY_TOKEN: raw });
    bridge.child.stdin.on('error', () => {});
    bridge.write('x'.repeat(11_000_000));
    const stderr = 'latchkey: A message on the standard input is longer than 10 MB\n';
    expect(await bridge.end()).toEqual({ code: 1, signal: null, stderr });
  });

  it('answers a request with an error once its token has ended (MCP-15)', async () => {
    const ending = await admin.token();
    const bridge = new McpProcess(['--url', app.url], { LATCHKEY_TOKEN: ending.credential ?? '' });
    bridge.request(1, 'ping');
    await bridge.answer(1);
    await admin.delete(`/personal-access-tokens/${ending.tokenId}`);
    bridge.request(2, 'ping');
    expect((await bridge.answer(2)).error).toMatchObject({ message: 'The token was revoked' });
    expect(await bridge.finish()).toMatchObject({ code: 0, stderr: '' });
  });

  it('finds address and token on the command line, in files and in the environment (CLI-2, MCP-15)', async () => {
    const bare = raw.replace(/^lkpat_/, '');
    expect(bare).not.toBe(raw);
    const path = file('token', `${raw}\n`);
    const wrong = { LATCHKEY_TOKEN: 'wrong', LATCHKEY_URL: 'http://127.0.0.1:1' };
    const found = await Promise.all([
      tokenIdOf(['--url', app.url, '--token', raw], wrong),
      tokenIdOf(['--url', `${app.url}/`, '--token-file', path], wrong),
      tokenIdOf([], { LATCHKEY_URL: `${app.url}/mcp`, LATCHKEY_TOKEN: bare }),
      tokenIdOf(['--url', `${app.url}/mcp/`], { LATCHKEY_TOKEN_FILE: path, LATCHKEY_TOKEN: '' }),
      tokenIdOf(['--url', `${app.url}/api/v1/mcp`], { LATCHKEY_TOKEN: `Bearer ${raw}` }),
    ]);
    expect(found).toEqual(found.map(() => token.tokenId));
  });

  it('takes a session as well (MCP-2)', async () => {
    const bridge = new McpProcess(['--url', app.url], { LATCHKEY_TOKEN: admin.credential ?? '' });
    bridge.request(1, 'tools/call', { name: 'whoami', arguments: {} });
    expect((await bridge.answer(1)).result.structuredContent.credential.kind).toBe('session');
    expect(await bridge.finish()).toMatchObject({ code: 0, stderr: '' });
  });

  it('asks for the token at a terminal, and does not show it (CLI-2)', async () => {
    const command = `'${process.execPath}' '${join(root, 'dist/bin/latchkey.js')}' mcp --url ${app.url}`;
    const terminal = spawn('script', ['-qec', command, '/dev/null'], { env: { PATH: process.env['PATH'] ?? '' } });
    const ended = once(terminal, 'close');
    let shown = '';
    terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
      shown += text;
    });
    await vi.waitUntil(() => shown.includes('Personal access token: '), { timeout: 20_000 });
    terminal.stdin.write('typed-wrongly\r');
    await ended;
    expect(terminal.exitCode).toBe(3);
    expect(shown).toContain('rejects the token: The token is not valid');
    expect(shown).not.toContain('typed-wrongly');
  });
});
