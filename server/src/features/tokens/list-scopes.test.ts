import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp } from '../../../test/support/test-app.ts';
import type { ScopeInfo } from '../../access/scopes.ts';

const path = '/personal-access-tokens/scopes';

/** The catalogue as the rules have it, category by category. */
const expected: Readonly<Record<string, readonly string[]>> = {
  Identity: ['openid', 'profile', 'email'],
  Access: ['offline_access'],
  Organization: ['org:read', 'org:write', 'org:admin'],
  Users: ['user:read', 'user:write', 'user:invite', 'user:delete'],
  'User Groups': ['usergroup:read', 'usergroup:write'],
  Teams: ['team:read', 'team:write'],
  Tokens: ['token:read', 'token:write', 'token:admin'],
};

describe('GET /personal-access-tokens/scopes', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  it('200: the whole catalogue, flat and by category, in order (PAT-17, SCOPE-4 to SCOPE-8)', async () => {
    const { status, body } = await admin.get(path);
    expect(status).toBe(200);
    expect(body.scopes.map(({ name }: ScopeInfo) => name)).toEqual(Object.values(expected).flat());
    expect(Object.keys(body.categories)).toEqual(Object.keys(expected));
    for (const [category, names] of Object.entries(expected)) {
      expect(body.categories[category].map(({ name }: ScopeInfo) => name)).toEqual(names);
      expect(body.categories[category]).toEqual(body.scopes.filter((info: ScopeInfo) => info.category === category));
    }
  });

  it('200: each entry has its four fields and nothing else (SCOPE-7)', async () => {
    const { body } = await admin.get(path);
    for (const info of body.scopes) {
      expect(info).toEqual({
        name: expect.any(String),
        description: expect.stringMatching(/\S/),
        category: expect.any(String),
        requiresUserConsent: expect.any(Boolean),
      });
    }
  });

  it('200: for a member too, and for a token with token:read (PAT-17, SCOPE-10)', async () => {
    const member = await app.member(admin, 'grace@example.com');
    const token = await member.token({ scopes: ['token:read'] });
    const responses = await Promise.all([member.get(path), token.get(path), admin.get(path)]);
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(new Set(responses.map(({ text }) => text)).size).toBe(1);
  });

  it('401: without a credential (AUTH-1)', async () => {
    expect((await app.anonymous.get(path)).status).toBe(401);
  });

  it('403: a token without token:read (SCOPE-10)', async () => {
    const token = await admin.token({ scopes: ['token:write', 'token:admin'] });
    const { status, body } = await token.get(path);
    expect([status, body.message]).toEqual([403, 'Insufficient scope. Required: token:read']);
  });
});

describe('GET /personal-access-tokens/scopes, configured', () => {
  it('200: only what MCP_SCOPES holds, in catalogue order, and nothing else can be granted (SCOPE-8)', async () => {
    const app = await TestApp.start({ MCP_SCOPES: 'token:write, user:read,token:read openid' });
    const admin = await app.setUp();
    const { body } = await admin.get(path);
    expect(body.scopes.map(({ name }: ScopeInfo) => name)).toEqual([
      'openid',
      'user:read',
      'token:read',
      'token:write',
    ]);
    expect(Object.keys(body.categories)).toEqual(['Identity', 'Users', 'Tokens']);
    const all = await admin.post('/personal-access-tokens', { name: 'x' });
    expect(all.body.token.scopes).toEqual(['openid', 'user:read', 'token:read', 'token:write']);
    const more = await admin.post('/personal-access-tokens', { name: 'x', scopes: ['org:read'] });
    expect([more.status, more.body.error.code]).toEqual([400, 'INVALID_SCOPE']);
    await app.close();
  });

  it('200: SCOPES_FILE adds scopes that other services enforce (SCOPE-7)', async () => {
    const app = await TestApp.start();
    const file = join(app.dataDir, 'scopes.json');
    const extra = [
      { name: 'kb:read', description: 'Read the knowledge base', category: 'Knowledge' },
      { name: 'user:export', description: 'Export people', category: 'Users', requiresUserConsent: false },
    ];
    writeFileSync(file, JSON.stringify(extra));
    await app.setUp();
    await app.stop();
    const configured = await TestApp.start({ DATA_DIR: app.dataDir, SCOPES_FILE: file });
    const admin = await configured.signIn('ada@example.com');
    const { body } = await admin.get(path);
    expect(body.categories['Knowledge']).toEqual([{ ...extra[0], requiresUserConsent: true }]);
    expect(body.categories['Users'].map(({ name }: ScopeInfo) => name)).toEqual([
      ...(expected['Users'] ?? []),
      'user:export',
    ]);
    expect(Object.keys(body.categories)).toEqual([...Object.keys(expected), 'Knowledge']);
    expect(body.scopes).toEqual(Object.values(body.categories).flat());
    const token = await admin.token({ scopes: ['kb:read'] });
    expect((await token.get('/org')).status).toBe(403);
    await configured.close();
  });
});
