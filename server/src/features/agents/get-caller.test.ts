import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callTool } from '../../../test/support/agents.ts';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

describe('GET /whoami', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  it('200: a session, which has no scopes to tell of (MCP-6)', async () => {
    const { status, body } = await admin.get('/whoami');
    const { _id: orgId } = (await admin.get('/org')).body;
    const credential = { kind: 'session', tokenId: null, scopes: null, expiresAt: null };
    expect([status, body]).toEqual([200, { userId: admin.userId, orgId, isAdmin: true, credential }]);
  });

  it('200: a token of any scope, with what it allows and until when; the tool answers the same (MCP-6, MCP-9)', async () => {
    const token = await member.token({ scopes: ['user:read', 'openid'], expiryDays: 30 });
    const { status, body } = await token.get('/whoami');
    const [listed] = (await member.get('/personal-access-tokens')).body.tokens;
    expect(status).toBe(200);
    expect([body.userId, body.isAdmin, body.credential.kind]).toEqual([member.userId, false, 'token']);
    expect([body.credential.tokenId, body.credential.expiresAt]).toEqual([token.tokenId, listed.expiresAt]);
    expect(body.credential.scopes.sort()).toEqual(['openid', 'user:read']);
    expect((await callTool(token, 'whoami')).structuredContent).toEqual((await token.get('/whoami')).body);
  });

  it('200: null for a token without end, and only scopes that are still granted (MCP-6, SCOPE-9)', async () => {
    const token = await member.token({ scopes: ['user:read', 'openid'], expiryDays: 'never' });
    app.environment['MCP_SCOPES'] = 'openid';
    await app.service(['FETCH_CONFIG']).post('/users/updateAppConfig');
    const { credential } = (await token.get('/whoami')).body;
    delete app.environment['MCP_SCOPES'];
    await app.service(['FETCH_CONFIG']).post('/users/updateAppConfig');
    expect([credential.scopes, credential.expiresAt]).toEqual([['openid'], null]);
  });

  it('401: no one, and a service (MCP-6)', async () => {
    expect((await app.anonymous.get('/whoami')).status).toBe(401);
    expect((await app.service().get('/whoami')).status).toBe(401);
  });
});
