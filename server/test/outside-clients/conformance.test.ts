import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Json, TestApp } from '../support/test-app.ts';
import { notApplicable } from './not-applicable.ts';
import { ensureOutsideClients, installMsMax, runOutside } from './outside-client.ts';

vi.setConfig({ testTimeout: 240_000 });

const suite = '@modelcontextprotocol/conformance/dist/index.js';

/** Outcome of a scenario: whether any check succeeded, and the failed ones. */
interface Outcome {
  readonly succeeded: number;
  readonly failures: readonly string[];
}

/** A loopback proxy that does what the suite cannot: it comes with a token. All else goes through as it is. */
class BearerProxy {
  readonly #server: Server;
  target = { url: '', token: '' };

  constructor() {
    this.#server = createServer((incoming, outgoing) => {
      const { url, token } = this.target;
      const headers = { ...incoming.headers, authorization: `Bearer ${token}` };
      const { method } = incoming;
      const onward = request(new URL(incoming.url ?? '/', url), { method, headers }, (response) => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(outgoing);
      });
      onward.on('error', () => outgoing.destroy());
      incoming.pipe(onward);
    });
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** Reads the checks that the suite wrote down, one directory a scenario. */
function readOutcomes(directory: string): ReadonlyMap<string, Outcome> {
  const outcomes = readdirSync(directory).map((name): [string, Outcome] => {
    const checks: Json[] = JSON.parse(readFileSync(join(directory, name, 'checks.json'), 'utf8'));
    const failed = checks.filter(({ status }) => !['SUCCESS', 'INFO'].includes(status));
    return [
      name.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, ''),
      {
        succeeded: checks.filter(({ status }) => status === 'SUCCESS').length,
        failures: failed.map(({ id, status, errorMessage }) => `${id}: ${status} ${errorMessage ?? ''}`),
      },
    ];
  });
  return new Map(outcomes);
}

const isPassed = ({ succeeded, failures }: Outcome) => succeeded > 0 && failures.length === 0;

describe('@modelcontextprotocol/conformance', () => {
  const proxy = new BearerProxy();
  let app: TestApp;
  let url: string;
  let listed: string[];
  let outcomes: ReadonlyMap<string, Outcome>;

  beforeAll(async () => {
    ensureOutsideClients();
    url = await proxy.listen();
    // As behind any proxy, the address that clients use is the base of the instance.
    app = await TestApp.start({ BASE_URL: url });
    const admin = await app.setUp();
    const { credential } = await admin.token();
    proxy.target = { url: app.url, token: credential ?? '' };
    const { stdout } = await runOutside(suite, ['list']);
    const [servers = ''] = stdout.split('Client scenarios');
    listed = [...servers.matchAll(/^ +- (\S+)/gm)].map(([, name = '']) => name);
    const directory = mkdtempSync(join(tmpdir(), 'latchkey-conformance-'));
    try {
      await runOutside(suite, ['server', '--url', `${url}/mcp`, '--suite', 'all', '--output-dir', directory]);
      outcomes = readOutcomes(directory);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  }, installMsMax);
  afterAll(async () => {
    proxy.close();
    await app.close();
  });

  it('runs every scenario that the suite has for servers', () => {
    expect(listed.length).toBeGreaterThan(20);
    expect([...outcomes.keys()].sort()).toEqual([...listed].sort());
  });

  it('passes every scenario that applies, and tells how many (MCP-1, MCP-4, MCP-14)', () => {
    const applying = [...outcomes].filter(([name]) => !(name in notApplicable));
    const failed = applying.filter(([, outcome]) => !isPassed(outcome));
    const reasons = Object.entries(notApplicable).map(([name, reason]) => `  ${name} ${reason}`);
    process.stdout.write(
      `conformance: ${applying.length - failed.length} of ${applying.length} scenarios passed, ` +
        `${reasons.length} do not apply:\n${reasons.join('\n')}\n`,
    );
    expect(Object.fromEntries(failed.map(([name, { failures }]) => [name, failures]))).toEqual({});
    expect(applying.map(([name]) => name).sort()).toEqual([
      'dns-rebinding-protection',
      'ping',
      'prompts-list',
      'resources-list',
      'server-initialize',
      'tools-list',
    ]);
  });

  it('has a reason for each scenario that does not apply, and none for others', () => {
    const known = Object.keys(notApplicable);
    expect(known.filter((name) => !outcomes.has(name))).toEqual([]);
    const passing = known.filter((name) => {
      const outcome = outcomes.get(name);
      return outcome !== undefined && isPassed(outcome);
    });
    expect(passing).toEqual([]);
  });
});
