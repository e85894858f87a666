import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { MailServer } from '../support/mail-server.ts';
import type { Client } from '../support/test-app.ts';
import { TwoNodes } from '../support/two-nodes.ts';

const soon = { timeout: 10_000 };

describe('two nodes: configuration', () => {
  let nodes: TwoNodes;
  let admin: Client;
  beforeAll(async () => {
    nodes = await TwoNodes.start();
    admin = await nodes.a.setUp();
  });
  afterAll(() => nodes.close());

  const scopesAt = async (place: 0 | 1) =>
    (await nodes.both[place].with(admin.credential).get('/personal-access-tokens/scopes')).body.scopes.length;

  it('reading the configuration anew at one node has each node read its own (CONFIG-26, NODE-5)', async () => {
    for (const { environment } of nodes.both) environment['MCP_SCOPES'] = 'org:read user:read';
    const token = await admin.token({ scopes: ['org:read', 'org:write'] });
    const atB = nodes.atB(token);
    expect((await atB.patch('/org', { shortName: 'Ex' })).status).toBe(200);
    expect((await nodes.a.service(['FETCH_CONFIG']).post('/users/updateAppConfig')).status).toBe(200);
    expect(await scopesAt(0)).toBe(2);
    await vi.waitUntil(async () => (await scopesAt(1)) === 2, soon);
    // A narrower configuration holds for what is kept in memory, too.
    expect((await atB.patch('/org', { shortName: 'Ex' })).status).toBe(403);
    expect((await atB.get('/org')).status).toBe(200);
  });

  it('a node whose own configuration is wrong keeps the old one, and says so (CONFIG-27, NODE-5)', async () => {
    const { a, b } = nodes;
    a.environment['MCP_SCOPES'] = 'org:read';
    b.environment['MCP_SCOPES'] = 'no such scope';
    expect((await a.service(['FETCH_CONFIG']).post('/users/updateAppConfig')).status).toBe(200);
    await vi.waitUntil(() => b.logLines.some((line) => line.includes('the old configuration stays')), soon);
    expect([await scopesAt(0), await scopesAt(1)]).toEqual([1, 2]);
    b.environment['MCP_SCOPES'] = 'org:read';
    expect((await a.service(['FETCH_CONFIG']).post('/users/updateAppConfig')).status).toBe(200);
    await vi.waitUntil(async () => (await scopesAt(1)) === 1, soon);
  });

  it('mail settings and sign-in steps that are stored at one node hold at the other at once (AUDIT-7, NODE-5)', async () => {
    const mails = await MailServer.start();
    const { hostname: host, port } = new URL(mails.url);
    const settings = { host, port: Number(port), security: 'none', from: 'no-reply@latchkey.test' };
    const atB = nodes.atB(admin);
    expect((await atB.get('/settings/smtp')).body.configured).toBe(false);
    expect((await admin.put('/settings/smtp', settings)).status).toBe(200);
    expect((await atB.get('/settings/smtp')).body).toMatchObject({ configured: true, source: 'stored', host });
    expect((await atB.post('/settings/smtp/test')).status).toBe(200);
    expect(mails.mails).toHaveLength(1);
    expect((await atB.delete('/settings/smtp')).status).toBe(200);
    expect((await admin.get('/settings/smtp')).body.configured).toBe(false);

    const authMethod = [{ order: 1, allowedMethods: [{ type: 'password' }, { type: 'otp' }] }];
    expect((await admin.put('/settings/smtp', settings)).status).toBe(200);
    expect((await admin.post('/orgAuthConfig/updateAuthMethod', { authMethod })).status).toBe(200);
    const begun = await nodes.b.anonymous.post('/userAccount/initAuth', { email: 'ada@example.com' });
    expect(begun.body.allowedMethods).toEqual(['password', 'otp']);
    await mails.stop();
  });
});
