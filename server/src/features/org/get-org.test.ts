import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, organization, TestApp } from '../../../test/support/test-app.ts';

describe('GET /org', () => {
  let app: TestApp;
  let admin: Client;
  let created: unknown;
  beforeAll(async () => {
    app = await TestApp.start();
    ({ body: created } = await app.anonymous.post('/org', { ...organization, phoneNumber: '+44 20 7946 0000' }));
    admin = await app.signIn(organization.contactEmail);
  });
  afterAll(() => app.close());

  it('200: an administrator and a member get the record that POST answered (ORG-17, ORG-18)', async () => {
    const member = await app.member(admin, 'grace@example.com');
    expect(await admin.get('/org')).toMatchObject({ status: 200, body: created });
    const { status, body, headers } = await member.get('/org');
    expect(status).toBe(200);
    expect(body).toEqual(created);
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it('200: a personal access token needs org:read, 403 without it (SCOPE-15, ERR-15)', async () => {
    const reader = await admin.token({ scopes: ['org:read'] });
    const other = await admin.token({ scopes: ['org:write', 'org:admin'] });
    expect((await reader.get('/org')).status).toBe(200);
    const refused = await other.get('/org');
    expect(refused).toMatchObject({ status: 403, body: { message: 'Insufficient scope. Required: org:read' } });
    expect(refused.headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope", scope="org:read"');
  });

  it('401: no one and an invented token (AUTH-19, AUTH-20)', async () => {
    expect(await app.anonymous.get('/org')).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } });
    expect(await app.with('x').get('/org')).toMatchObject({ status: 401, body: { error: { code: 'TOKEN_INVALID' } } });
  });

  it('401: sessions and personal access tokens end with the organization (AUTH-24, ORG-26)', async () => {
    const token = await admin.token();
    expect((await token.get('/org')).status).toBe(200);
    await app.deleteOrganization();
    for (const caller of [admin, token]) {
      expect(await caller.get('/org')).toMatchObject({ status: 401, body: { error: { code: 'TOKEN_INVALID' } } });
    }
  });
});
