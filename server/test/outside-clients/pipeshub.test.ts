import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Json, TestApp } from '../support/test-app.ts';
import { ensureOutsideClients, installMsMax, outsideFile } from './outside-client.ts';

const program = outsideFile('@pipeshub-ai/mcp/bin/mcp-server.js');

/** A third-party local MCP server, used over its standard input and output, as an agent does. */
class StdioServer {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #waiting = new Map<number, (message: Json) => void>();
  #lastId = 0;

  constructor(args: readonly string[]) {
    this.#child = spawn(process.execPath, [program, 'start', ...args]);
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      const message: Json = JSON.parse(line);
      this.#waiting.get(message.id)?.(message);
    });
  }

  #send(message: Json): void {
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  request(method: string, params: Json): Promise<Json> {
    this.#lastId += 1;
    const id = this.#lastId;
    const responded = new Promise<Json>((resolve) => {
      this.#waiting.set(id, resolve);
    });
    this.#send({ id, method, params });
    return responded;
  }

  async start(): Promise<void> {
    const clientInfo = { name: 'test', version: '1' };
    await this.request('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
    this.#send({ method: 'notifications/initialized' });
  }

  async stop(): Promise<void> {
    this.#child.kill();
    await once(this.#child, 'close');
  }
}

describe('a stdio MCP client from npm, with a personal access token (PAT-27, USER-14, GROUP-4, TEAM-2, TEAM-15)', () => {
  let app: TestApp;
  let admin: Client;
  let server: StdioServer;

  beforeAll(async () => {
    ensureOutsideClients();
    app = await TestApp.start();
    admin = await app.setUp();
    const grace = await app.member(admin, 'grace@example.com');
    await admin.post('/userGroups', { name: 'Research', type: 'custom' });
    const members = [{ userId: grace.userId, role: 'READER' }];
    await admin.post('/teams', { name: 'Compilers', description: 'COBOL', members });
    const { credential } = await admin.token({ scopes: ['user:read', 'usergroup:read', 'team:read'] });
    server = new StdioServer(['--server-url', `${app.url}/api/v1`, '--bearer-auth', credential ?? '']);
    await server.start();
  }, installMsMax);
  afterAll(async () => {
    await server.stop();
    await app.close();
  });

  /** Returns the result of a call of its directory tool. */
  async function directory(args: Json): Promise<Json> {
    const { result } = await server.request('tools/call', { name: 'pipeshub_directory', arguments: args });
    const [{ text }] = result.content;
    return JSON.parse(text);
  }

  it('knows whose token it is, out of the token itself', async () => {
    const orgId = (await admin.get('/org')).body._id;
    const ada = { userId: admin.userId, orgId, fullName: 'Ada Lovelace' };
    expect(await directory({ action: 'whoami' })).toEqual(ada);
  });

  it('lists the users of a page, as GET /users?limit=50&page=1 answers them', async () => {
    const listed = await directory({ action: 'list_users', limit: 50, page: 1 });
    expect(listed).toEqual((await admin.get('/users?limit=50&page=1')).body);
    expect(listed.pagination.totalCount).toBe(2);
    const found = await directory({ action: 'list_users', search: 'grace' });
    expect(found.users.map(({ email }: Json) => email)).toEqual(['grace@example.com']);
  });

  it('gets one user', async () => {
    const [, grace] = (await admin.get('/users')).body;
    expect(await directory({ action: 'get_user', userId: grace._id })).toEqual(grace);
  });

  it('lists the groups, as GET /userGroups?limit=25&page=1 answers them', async () => {
    const listed = await directory({ action: 'list_groups', limit: 25, page: 1 });
    expect(listed).toEqual((await admin.get('/userGroups?limit=25&page=1')).body);
    expect(listed.groups.map(({ name, userCount }: Json) => [name, userCount])).toEqual([
      ['admin', 1],
      ['everyone', 2],
      ['standard', 0],
      ['Research', 0],
    ]);
  });

  it('lists the teams, as GET /teams/user/teams?limit=100&page=1 answers them', async () => {
    const listed = await directory({ action: 'list_my_teams', limit: 100, page: 1 });
    expect(listed).toEqual((await admin.get('/teams/user/teams?limit=100&page=1')).body);
    expect(listed.teams).toMatchObject([{ name: 'Compilers', memberCount: 2, canEdit: true, canDelete: true }]);
  });
});
