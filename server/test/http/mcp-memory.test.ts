import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { askNewest, send } from '../support/agents.ts';
import { type Client, TestApp } from '../support/test-app.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const each = 60;

describe('memory of the endpoint of agents', () => {
  let app: TestApp;
  let agent: Client;
  beforeAll(async () => {
    app = await TestApp.start({ LOG_LEVEL: 'silent' });
    agent = await (await app.setUp()).token();
  });
  afterAll(() => app.close());

  /** Everything that can be asked, well and badly, and given up. */
  async function everything(): Promise<void> {
    const call = (name: string, given: object) => ({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name, arguments: given },
    });
    const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
    await send(agent, { jsonrpc: '2.0', id: 1, method: 'initialize', params: hello });
    await send(agent, { jsonrpc: '2.0', method: 'notifications/initialized' });
    await send(agent, { jsonrpc: '2.0', id: 1, method: 'prompts/list' });
    await send(agent, call('list_users', { limit: 1 }));
    await send(agent, call('nope', {}));
    await send(agent, [call('whoami', {}), call('get_user', { id: 'x' })]);
    await send(agent, { nonsense: true });
    await send(app.with('nonsense'), call('whoami', {}));
    await askNewest(agent, 'tools/call', { name: 'whoami', arguments: {} });
    await askNewest(agent, 'subscriptions/listen', { notifications: { toolsListChanged: true } });
    const controller = new AbortController();
    const headers = {
      authorization: `Bearer ${agent.credential}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    const body = JSON.stringify(call('explain_access', {}));
    const given = fetch(`${app.url}/mcp`, { method: 'POST', headers, body, signal: controller.signal }).catch(
      () => null,
    );
    controller.abort();
    await given;
  }

  async function heapAfter(rounds: number): Promise<number> {
    for (let round = 0; round < rounds; round++) await everything();
    app.logLines.length = 0;
    for (let time = 0; time < 3; time++) {
      await setImmediate();
      collect();
    }
    return process.memoryUsage().heapUsed;
  }

  it('nothing is left of requests that are over, whatever became of them (MCP-14)', async () => {
    await heapAfter(each);
    const before = await heapAfter(each);
    const after = await heapAfter(each);
    const bytesEach = (after - before) / (each * 11);
    // A request that stayed would hold some kilobytes: its message, its server and what that is made of.
    expect(bytesEach).toBeLessThan(1_500);
  }, 60_000);
});
