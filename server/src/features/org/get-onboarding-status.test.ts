import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

const path = '/org/onboarding-status';

describe('GET /org/onboarding-status', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  it('200: notConfigured at first, then what was set, for every member (ORG-1, ORG-28)', async () => {
    const member = await app.member(admin, 'grace@example.com');
    expect(await admin.get(path)).toMatchObject({ status: 200, body: { status: 'notConfigured' } });
    for (const status of ['configured', 'skipped', 'notConfigured']) {
      await admin.put(path, { status });
      const response = await member.get(path);
      expect([response.status, response.body]).toEqual([200, { status }]);
      expect(response.headers.get('cache-control')).toBe('no-store');
    }
  });

  it('200: a personal access token needs org:read, 403 without it (SCOPE-15)', async () => {
    const reader = await admin.token({ scopes: ['org:read'] });
    const other = await admin.token({ scopes: ['org:write', 'org:admin'] });
    expect((await reader.get(path)).status).toBe(200);
    expect(await other.get(path)).toMatchObject({
      status: 403,
      body: { message: 'Insufficient scope. Required: org:read' },
    });
  });

  it('401: without a credential, and once the organization is deleted (AUTH-19, ORG-26)', async () => {
    expect((await app.anonymous.get(path)).status).toBe(401);
    await app.deleteOrganization();
    expect(await admin.get(path)).toMatchObject({ status: 401, body: { error: { code: 'TOKEN_INVALID' } } });
  });
});
