import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { onePixel } from '../../../test/support/made-pictures.ts';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

const picture = new Uint8Array(onePixel());

let app: TestApp;
let admin: Client;
let member: Client;
let orgId: string;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
  member = await app.member(admin, 'grace@example.com');
  orgId = (await admin.get('/org')).body._id;
});
afterAll(() => app.close());

const recordOf = (ownerId: string) =>
  app.services.db.read.selectFrom('pictures').where('owner_id', '=', ownerId).selectAll().executeTakeFirst();

describe.each([
  {
    path: '/users/dp',
    rule: 'PICTURE-4',
    ownerOf: () => admin.userId,
    removed: () => ({ userId: admin.userId, orgId, pic: null, mimeType: null }),
    isGone: async () => (await admin.get('/users/dp')).body.errorMessage === 'User picture not found',
  },
  {
    path: '/org/logo',
    rule: 'PICTURE-7',
    ownerOf: () => orgId,
    removed: () => ({ orgId, logo: null, logoUrl: null, mimeType: null }),
    isGone: async () => (await admin.get('/org/logo')).status === 204,
  },
])('DELETE $path ($rule)', ({ path, ownerOf, removed, isGone }) => {
  it('200: where there never was one the answer is the same, and nothing is recorded', async () => {
    const audit = await app.audit();
    const { status, body } = await admin.delete(path);
    expect([status, body]).toEqual([200, removed()]);
    expect(await recordOf(ownerOf())).toBeUndefined();
    expect(await app.audit()).toEqual(audit);
  });

  describe('with a picture', () => {
    beforeEach(async () => {
      await admin.upload(path, picture);
    });

    it('200: it is gone, and its record is kept', async () => {
      app.clock.advance(60_000);
      const { status, body, headers } = await admin.delete(path);
      expect([status, body, headers.get('cache-control')]).toEqual([200, removed(), 'no-store']);
      expect(await isGone()).toBe(true);
      expect(await recordOf(ownerOf())).toEqual({
        owner_id: ownerOf(),
        org_id: orgId,
        content: null,
        mime_type: null,
        updated_at: app.clock.now(),
      });
    });

    it('200: one audit row for the first time, none for the second (STORE-1)', async () => {
      const [before, events] = [await app.audit(), await app.events()];
      for (let time = 0; time < 2; time += 1) expect((await admin.delete(path)).body).toEqual(removed());
      const after = await app.audit();
      expect(after).toHaveLength(before.length + 1);
      expect(after.at(-1)).toMatchObject({
        action: 'picture.removed',
        org_id: orgId,
        actor_user_id: admin.userId,
        actor_token_id: null,
        subject_id: ownerOf(),
      });
      expect(await app.events()).toEqual(events);
    });

    it('200: there can be another one afterwards', async () => {
      await admin.delete(path);
      const { status, bytes } = await admin.upload(path, picture);
      expect([status, (await admin.get(path)).bytes.equals(bytes)]).toEqual([201, true]);
    });

    it('a body changes nothing: what is removed is told by the address', async () => {
      await member.upload('/users/dp', picture);
      await admin.delete(path, { userId: member.userId, orgId: 'f'.repeat(24) });
      expect((await member.get('/users/dp')).headers.get('content-type')).toBe('image/jpeg');
      expect(await isGone()).toBe(true);
    });
  });
});

describe('who may remove what', () => {
  beforeAll(async () => {
    for (const path of ['/users/dp', '/org/logo']) await admin.upload(path, picture);
  });

  it('403: a member on the logo, by session and by token; 401: no one (PICTURE-7, ERR-15)', async () => {
    const token = await member.token({ scopes: ['org:write'] });
    for (const client of [member, token]) {
      const { status, body } = await client.delete('/org/logo');
      expect([status, body.error.code]).toEqual([403, 'ADMIN_REQUIRED']);
    }
    for (const path of ['/users/dp', '/org/logo']) expect((await app.anonymous.delete(path)).status).toBe(401);
    expect((await member.get('/org/logo')).status).toBe(200);
  });

  it("200: a member removes their own, and no one else's (PICTURE-4)", async () => {
    await member.upload('/users/dp', picture);
    expect((await member.delete('/users/dp')).body.userId).toBe(member.userId);
    expect((await admin.get('/users/dp')).headers.get('content-type')).toBe('image/jpeg');
  });

  it.each([
    ['/users/dp', 'user:write', ['user:read', 'user:delete', 'org:write']],
    ['/org/logo', 'org:write', ['org:read', 'org:admin', 'user:write']],
  ])('%s takes a token with %s and no other (ERR-16)', async (path, scope, others) => {
    const poor = await admin.token({ scopes: others });
    expect((await poor.delete(path)).body.message).toBe(`Insufficient scope. Required: ${scope}`);
    const good = await admin.token({ scopes: [scope] });
    expect((await good.delete(path)).status).toBe(200);
    expect((await app.audit()).at(-1)).toMatchObject({ action: 'picture.removed', actor_token_id: good.tokenId });
  });
});
