import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

const revoked = { status: 401, body: { error: { code: 'TOKEN_REVOKED' } } };

describe('DELETE /users/:id/personal-access-tokens', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  let path = '';
  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
    path = `/users/${member.userId}/personal-access-tokens`;
  });
  afterAll(() => app.close());

  it('200: every token of the user ends, with its descendants, and the reason is kept (SESSION-9)', async () => {
    const parent = await member.token({ scopes: ['token:write', 'org:read'] });
    const child = await parent.token({ scopes: ['org:read'] });
    const others = await admin.token({ scopes: ['org:admin', 'org:read'] });
    const rows = (await app.audit()).length;
    expect(await others.delete(path, { reason: 'Laptop lost' })).toMatchObject({ status: 200, body: { revoked: 2 } });
    for (const client of [parent, child]) expect(await client.get('/org')).toMatchObject(revoked);
    for (const client of [member, others]) expect((await client.get('/org')).status).toBe(200);
    const details = { reason: 'Laptop lost' };
    const row = { action: 'token.revoked', actor_token_id: others.tokenId, subject_owner_id: member.userId, details };
    expect((await app.audit()).slice(rows)).toMatchObject([row, row]);
    expect((await admin.delete(path)).body).toEqual({ revoked: 0 });
  });

  it('200: the reason may stand in the query; without one, an administrator is named (SESSION-9)', async () => {
    const [one, two] = [await member.token(), await member.token()];
    expect((await admin.delete(`${path}?reason=Left`)).body).toEqual({ revoked: 2 });
    const three = await member.token();
    await admin.delete(path);
    const { data } = (await admin.get(`/personal-access-tokens/admin?status=revoked&userId=${member.userId}`)).body;
    const reasons = new Map(
      data.map(({ id, revokeReason }: { id: string; revokeReason: string }) => [id, revokeReason]),
    );
    expect([one, two, three].map(({ tokenId }) => reasons.get(tokenId))).toEqual([
      'Left',
      'Left',
      'Revoked by administrator',
    ]);
  });

  it('400, 403 and 404: a reason that is too long, members, narrower tokens, unknown users; nothing ends (SESSION-9)', async () => {
    const token = await member.token();
    expect((await admin.delete(path, { reason: 'x'.repeat(501) })).status).toBe(400);
    for (const client of [member, token, await admin.token({ scopes: ['token:admin', 'token:write'] })]) {
      expect((await client.delete(path)).status).toBe(403);
    }
    expect((await admin.delete(path.replace(member.userId, '0'.repeat(24)))).status).toBe(404);
    expect((await token.get('/org')).status).toBe(200);
  });
});
