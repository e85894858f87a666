import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callTool, codeOf, toolNames } from '../../../test/support/agents.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';
import { addressOf } from '../../http/endpoint.ts';
import { routes } from '../../routes.gen.ts';

describe('GET /access', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  it('200: every operation for people once, with what it needs (MCP-12)', async () => {
    const { status, body } = await admin.get('/access');
    expect(status).toBe(200);
    const forPeople = routes.filter(({ policy: { who } }) => who !== 'anyone' && who !== 'holder' && who !== 'service');
    const names = forPeople.map((route) => `${route.method} ${addressOf(route).replace('/api/v1', '')}`);
    expect(body.operations.map(({ operation }: Json) => operation)).toEqual(names);
    expect(body.operations.every(({ allowed, lacks }: Json) => allowed && lacks === null)).toBe(true);
  });

  it('200: what it says is what happens, for every tool and each of some credentials (MCP-12, MCP-8)', async () => {
    const credentials = [
      member,
      admin,
      await member.token({ scopes: ['user:read', 'org:admin'] }),
      await admin.token({ scopes: ['token:read'] }),
    ];
    for (const client of credentials) {
      const { operations } = (await client.get('/access?tools=true')).body;
      const allowed = operations.filter((one: Json) => one.allowed).map(({ tool }: Json) => tool);
      expect(allowed.sort()).toEqual((await toolNames(client)).sort());
      for (const { tool, lacks, scope } of operations.filter((one: Json) => !one.allowed)) {
        const result = await callTool(client, tool);
        // A caller who lacks both gets the scope from the call, and here what no scope would change.
        const codes = lacks === 'scope' ? ['INSUFFICIENT_SCOPE'] : ['ADMIN_REQUIRED', 'INSUFFICIENT_SCOPE'];
        expect(codes, tool).toContain(codeOf(result));
        expect(result.content[0].text).toContain(lacks === 'scope' ? scope : 'equired');
      }
    }
  });

  it('200: one of them, by the name of its tool or by its address or its operationId, and what is missing (MCP-12, FIT-120)', async () => {
    const token = await member.token({ scopes: ['user:read'] });
    const expected = {
      operation: 'DELETE /users/:id',
      operationId: 'deleteUser',
      tool: 'delete_user',
      who: 'admin',
      scope: 'user:delete',
      allowed: false,
    };
    for (const operation of ['delete_user', 'deleteUser', 'DELETE /users/:id']) {
      const { operations } = (await callTool(token, 'explain_access', { operation })).structuredContent;
      expect(operations).toEqual([{ ...expected, lacks: 'administrator' }]);
    }
    const own = await admin.token({ scopes: ['user:read'] });
    const { operations } = (await callTool(own, 'explain_access', { operation: 'delete_user' })).structuredContent;
    expect(operations).toEqual([{ ...expected, lacks: 'scope' }]);
    const [password] = (await own.get('/access?operation=POST%20%2FuserAccount%2Fpassword%2Freset')).body.operations;
    expect([password.scope, password.allowed, password.lacks]).toEqual([null, false, 'session']);
    expect((await own.get('/access?operation=nothing')).body.operations).toEqual([]);
  });

  it('200: those that are tools, and those that are none (MCP-12)', async () => {
    const all = (await admin.get('/access')).body.operations.length;
    const [tools, others] = await Promise.all(['true', 'false'].map((flag) => admin.get(`/access?tools=${flag}`)));
    expect((tools?.body.operations.length ?? 0) + (others?.body.operations.length ?? 0)).toBe(all);
    expect(others?.body.operations.every(({ tool }: Json) => tool === null)).toBe(true);
  });

  it('400: another flag, and an operation that is too long; 401: no one (MCP-12)', async () => {
    expect((await admin.get('/access?tools=yes')).status).toBe(400);
    expect((await admin.get(`/access?operation=${'x'.repeat(201)}`)).status).toBe(400);
    expect((await app.anonymous.get('/access')).status).toBe(401);
  });
});
