import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SignInDesk } from '../../../test/support/sign-in-desk.ts';
import { TestApp } from '../../../test/support/test-app.ts';

const path = '/userAccount/internal/password/check';

describe('GET /userAccount/internal/password/check', () => {
  let desk: SignInDesk;
  beforeAll(async () => {
    desk = await SignInDesk.start();
  });
  afterAll(() => desk.close());

  const asked = async () => (await desk.app.service(['FETCH_CONFIG']).get(path)).body;

  it('200: whether a password is asked for, in one step or another (PASSWORD-13)', async () => {
    for (const [steps, isPasswordAuthEnabled] of [
      [[['password', 'otp']], true],
      [[['otp'], ['password']], true],
      [[['otp']], false],
      [[['password']], true],
    ] as const) {
      await desk.setSteps(...steps);
      expect(await asked()).toEqual({ isPasswordAuthEnabled });
    }
  });

  it('200: no, while there is no organization; 401 once it is deleted (PASSWORD-13, ORG-27)', async () => {
    const app = await TestApp.start();
    try {
      const service = app.service(['FETCH_CONFIG']);
      expect(await service.get(path)).toMatchObject({ status: 200, body: { isPasswordAuthEnabled: false } });
      await app.setUp();
      expect((await service.get(path)).body).toEqual({ isPasswordAuthEnabled: true });
      await app.deleteOrganization();
      expect(await service.get(path)).toMatchObject({ status: 401, body: { error: { code: 'TOKEN_INVALID' } } });
    } finally {
      await app.close();
    }
  });

  it('403: a service without the scope FETCH_CONFIG (PASSWORD-13)', async () => {
    for (const scopes of [['USER_LOOKUP'], [], ['EVENTS_READ', 'TOKEN_INTROSPECT']]) {
      expect((await desk.app.service(scopes).get(path)).status, scopes.join()).toBe(403);
    }
    expect((await desk.app.service(['USER_LOOKUP', 'fetch:config']).get(path)).status).toBe(200);
  });

  it("401: an administrator's session and token, and no one (AUTH-28)", async () => {
    for (const client of [desk.admin, await desk.admin.token(), desk.app.anonymous]) {
      expect((await client.get(path)).status).toBe(401);
    }
  });
});
