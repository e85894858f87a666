import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { ensureServerIsBuilt } from '../../server/test/support/server-process.ts';
import type { Json } from '../../server/test/support/test-app.ts';
import { FakeInstance, type HeldRequest } from './fake-instance.ts';
import { McpProcess } from './mcp-process.ts';

vi.setConfig({ testTimeout: 60_000 });
beforeAll(ensureServerIsBuilt, 120_000);

const token = 'lkpat_tests-hold-this';
let instance: FakeInstance;
let bridge: McpProcess;

beforeEach(async () => {
  instance = await FakeInstance.start();
  bridge = new McpProcess(['--url', instance.url], { LATCHKEY_TOKEN: token });
});
afterEach(() => {
  bridge.child.kill('SIGKILL');
  instance.close();
});

/** Waits for a message at the instance. */
const arrived = (isIt: (message: Json) => boolean): Promise<HeldRequest> =>
  vi.waitUntil(() => instance.held.find(({ message }) => isIt(message)), { timeout: 15_000 });
const request = (id: string | number) => arrived((message) => message.id === id);

function reply({ message, response }: HeldRequest, result: Json): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }));
}

function refuse({ response }: HeldRequest, status: number, body: string): void {
  const type = { '<': 'text/html', ':': 'text/event-stream', h: 'text/plain' }[body.charAt(0)] ?? 'application/json';
  response.writeHead(status, { 'content-type': type }).end(body);
}

describe('latchkey mcp, between a client and an instance', () => {
  it('hands on answers in the order in which they come, of JSON and of streams (MCP-15)', async () => {
    bridge.request(1, 'tools/list');
    bridge.request('two', 'tools/call', { name: 'whoami', arguments: { deep: [{ ä: null }] } });
    bridge.request(3, 'tools/list');
    const [first, second, third] = [await request(1), await request('two'), await request(3)];
    expect(second.message).toEqual({
      jsonrpc: '2.0',
      id: 'two',
      method: 'tools/call',
      params: { name: 'whoami', arguments: { deep: [{ ä: null }] } },
    });
    expect(second.headers.authorization).toBe(`Bearer ${token}`);
    reply(third, { order: 1 });
    await bridge.answer(3);
    const event = (message: Json) => `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`;
    second.response.writeHead(200, { 'content-type': 'text/event-stream' });
    second.response.write(event({ method: 'notifications/progress', params: { progressToken: 1, progress: 1 } }));
    await vi.waitUntil(() => bridge.messages.some(({ method }) => method === 'notifications/progress'));
    reply(first, { order: 2 });
    await bridge.answer(1);
    second.response.end(event({ id: 'two', result: { order: 3 } }));
    await bridge.answer('two');
    expect(bridge.messages.map(({ id }) => id)).toEqual([3, undefined, 1, 'two']);
    expect(await bridge.finish()).toEqual({ code: 0, signal: null, stderr: '' });
  });

  it('says with each request what was agreed on, or what the request says itself (MCP-14, MCP-15)', async () => {
    bridge.request(1, 'initialize', { protocolVersion: '2025-06-18' });
    const first = await request(1);
    expect(first.headers['mcp-protocol-version']).toBeUndefined();
    reply(first, { protocolVersion: '2025-03-26', capabilities: {}, serverInfo: {} });
    await bridge.answer(1);
    bridge.write({ jsonrpc: '2.0', method: 'notifications/initialized' });
    const told = await arrived(({ method }) => method === 'notifications/initialized');
    expect(told.headers['mcp-protocol-version']).toBe('2025-03-26');
    told.response.writeHead(202).end();
    const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
    bridge.request(2, 'tools/call', { name: 'grüße', arguments: {}, _meta });
    const second = await request(2);
    expect(second.headers).toMatchObject({
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': `=?base64?${Buffer.from('grüße').toString('base64')}?=`,
    });
    reply(second, {});
    await bridge.answer(2);
    expect(await bridge.finish()).toEqual({ code: 0, signal: null, stderr: '' });
    // The stream that older clients open would be of no use.
    expect(instance.seen.filter(({ path }) => path === '/mcp')).toHaveLength(4);
  });

  it('answers every request that fails with an error of its id, without the token (MCP-15)', async () => {
    const told = { jsonrpc: '2.0', id: null, error: { code: -32_000, message: 'Told', data: { code: 'X' } } };
    const ways: readonly [string, (held: HeldRequest) => void, Json][] = [
      ['told', (held) => refuse(held, 401, JSON.stringify(told)), told.error],
      ['html', (held) => refuse(held, 502, '<p>Bad gateway'), { message: `${instance.url} answers 502` }],
      ['text', (held) => refuse(held, 200, 'hello'), { message: expect.stringMatching(/not of the protocol/) }],
      ['empty', (held) => refuse(held, 200, '{}'), { message: expect.stringMatching(/not of the protocol/) }],
      ['accepted', (held) => refuse(held, 202, ''), { message: expect.stringMatching(/not of the protocol/) }],
      [
        'silent',
        (held) => refuse(held, 200, ': nothing\n\n'),
        { message: expect.stringMatching(/not of the protocol/) },
      ],
      [
        'cut',
        (held) => held.response.destroy(),
        { message: expect.stringMatching(/cannot be reached: the connection was cut/) },
      ],
      ['moved', ({ response }) => void response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end(), {}],
    ];
    for (const [id] of ways) bridge.request(id, 'ping');
    for (const [id, fail, expected] of ways) {
      fail(await request(id));
      const { error } = await bridge.answer(id);
      expect(error.code, id).toBe(-32_000);
      expect(error, id).toMatchObject(expected);
    }
    const { code, stderr } = await bridge.finish();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(bridge.lines).toHaveLength(ways.length);
    expect(bridge.lines.join('\n')).not.toContain(token);
  });

  it('hangs up on a request that is cancelled, and answers it no more (MCP-15)', async () => {
    bridge.request(1, 'tools/list');
    bridge.request(2, 'tools/list');
    const [first, second] = [await request(1), await request(2)];
    bridge.write({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
    await vi.waitUntil(() => first.isGone, { timeout: 15_000 });
    expect(second.isGone).toBe(false);
    reply(second, {});
    await bridge.answer(2);
    expect(await bridge.finish()).toEqual({ code: 0, signal: null, stderr: '' });
    expect(bridge.messages.map(({ id }) => id)).toEqual([2]);
  });

  it('waits at the end of the input for what is under way, but not for a subscription (MCP-15)', async () => {
    bridge.request('sub', 'subscriptions/listen');
    bridge.request(1, 'tools/list');
    const subscription = await request('sub');
    subscription.response.writeHead(200, { 'content-type': 'text/event-stream' });
    subscription.response.write(': open\n\n');
    const first = await request(1);
    // One that waits as long as it may, and began before.
    const patient = new McpProcess(['--url', instance.url], { LATCHKEY_TOKEN: token });
    patient.request('never', 'tools/list');
    await request('never');
    const ends = [patient.finish().then(() => 'patient')];
    bridge.child.stdin.end();
    reply(first, { late: true });
    ends.push(bridge.end().then(() => 'ours'));
    expect(await Promise.race(ends)).toBe('ours');
    expect(await bridge.end()).toEqual({ code: 0, signal: null, stderr: '' });
    await Promise.all(ends);
    expect(bridge.messages).toEqual([{ jsonrpc: '2.0', id: 1, result: { late: true } }]);
    await vi.waitUntil(() => subscription.isGone);
  });

  it('ends all the same where no answer comes (MCP-15)', async () => {
    bridge.request(1, 'tools/list');
    const first = await request(1);
    expect(await bridge.finish()).toEqual({ code: 0, signal: null, stderr: '' });
    expect(bridge.lines).toEqual([]);
    await vi.waitUntil(() => first.isGone);
  });

  it('ends when no one reads its output any more (MCP-15)', async () => {
    bridge.request(1, 'tools/list');
    const first = await request(1);
    bridge.child.stdout.destroy();
    reply(first, {});
    expect(await bridge.end()).toMatchObject({ code: 0, stderr: '' });
  });

  it('tells people, and no one else, of a notification that did not arrive (MCP-15)', async () => {
    bridge.write({ jsonrpc: '2.0', method: 'notifications/roots/list_changed' });
    refuse(await arrived(({ method }) => method === 'notifications/roots/list_changed'), 500, '');
    bridge.request(1, 'ping');
    reply(await request(1), {});
    await bridge.answer(1);
    expect(await bridge.finish()).toMatchObject({ code: 0, stderr: `latchkey: ${instance.url} answers 500\n` });
    expect(bridge.lines).toHaveLength(1);
  });
});
