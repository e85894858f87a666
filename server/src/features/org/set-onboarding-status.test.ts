import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

const path = '/org/onboarding-status';
const statuses = ['notConfigured', 'configured', 'skipped'] as const;

describe('PUT /org/onboarding-status', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  const moves = statuses.flatMap((from) => statuses.map((to) => [from, to] as const));
  it.each(moves)('200: from %s to %s (ORG-29)', async (from, to) => {
    await admin.put(path, { status: from });
    app.clock.advance(1_000);
    const { status, body } = await admin.put(path, { status: to });
    expect([status, body]).toEqual([200, { message: expect.any(String), status: to }]);
    const updatedAt = new Date(app.clock.now()).toISOString();
    expect((await admin.get('/org')).body).toMatchObject({ onBoardingStatus: to, updatedAt });
  });

  it('200: an audit row tells of it, and no entity event (AUDIT-1, STORE-1)', async () => {
    await admin.put(path, { status: 'notConfigured' });
    const events = await app.events();
    const token = await admin.token({ scopes: ['org:write'] });
    expect((await token.put(path, { status: 'skipped', isDeleted: true })).status).toBe(200);
    expect((await app.audit()).at(-1)).toMatchObject({
      action: 'org.onboarding-set',
      actor_user_id: admin.userId,
      actor_token_id: token.tokenId,
      changes: { onBoardingStatus: { before: 'notConfigured', after: 'skipped' } },
    });
    expect(await app.events()).toEqual(events);
    expect((await admin.get('/org')).body.isDeleted).toBe(false);
  });

  it.each([
    [undefined],
    [{}],
    [{ status: null }],
    [{ status: '' }],
    [{ status: 'Configured' }],
    [{ status: 'done' }],
    [{ status: ['skipped'] }],
    [{ status: true }],
    [{ onBoardingStatus: 'skipped' }],
  ])('400: %j changes nothing (ORG-29, HTTP-14)', async (given) => {
    const before = (await admin.get('/org')).body;
    const { status, body } = await admin.put(path, given);
    expect([status, body.error.code]).toEqual([400, 'VALIDATION_ERROR']);
    expect((await admin.get('/org')).body).toEqual(before);
  });

  it('401, 403: no one, a member, a token without org:write (ERR-16, SCOPE-16)', async () => {
    const member = await app.member(admin, 'grace@example.com');
    const reader = await admin.token({ scopes: ['org:read', 'org:admin'] });
    const before = (await admin.get('/org')).body;
    const codes: string[] = [];
    for (const client of [app.anonymous, member, reader]) {
      const { status, body } = await client.put(path, { status: 'configured' });
      codes.push(`${status} ${body.error.code}`);
    }
    expect(codes).toEqual(['401 UNAUTHORIZED', '403 ADMIN_REQUIRED', '403 INSUFFICIENT_SCOPE']);
    expect((await admin.get('/org')).body).toEqual(before);
  });
});
