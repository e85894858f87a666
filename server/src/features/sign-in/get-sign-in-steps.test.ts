import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SignInDesk, stepsOf } from '../../../test/support/sign-in-desk.ts';
import { TestApp } from '../../../test/support/test-app.ts';

const path = '/orgAuthConfig/authMethods';

describe('GET /orgAuthConfig/authMethods', () => {
  let desk: SignInDesk;
  beforeAll(async () => {
    desk = await SignInDesk.start();
  });
  afterAll(() => desk.close());

  it('200: a password alone in a new organization (AUTH-45, ORG-10)', async () => {
    const app = await TestApp.start();
    try {
      const admin = await app.setUp();
      const response = await admin.get(path);
      expect(response).toMatchObject({ status: 200 });
      expect(response.body).toEqual({ authMethods: stepsOf(['password']) });
    } finally {
      await app.close();
    }
  });

  it('200: what was set last (AUTH-45)', async () => {
    await desk.setSteps(['otp'], ['password']);
    expect((await desk.admin.get(path)).body).toEqual({ authMethods: stepsOf(['otp'], ['password']) });
    await desk.setSteps(['password', 'otp']);
    expect((await desk.admin.get(path)).body).toEqual({ authMethods: stepsOf(['password', 'otp']) });
  });

  it('403: a member, and a personal access token whatever its scopes (AUTH-32, ERR-15)', async () => {
    const member = await desk.app.member(desk.admin, 'grace@example.com');
    expect(await member.get(path)).toMatchObject({ status: 403, body: { error: { code: 'ADMIN_REQUIRED' } } });
    const token = await desk.admin.token();
    expect(await token.get(path)).toMatchObject({ status: 403, body: { error: { code: 'FORBIDDEN' } } });
  });

  it('401: no one (AUTH-19)', async () => {
    expect((await desk.app.anonymous.get(path)).status).toBe(401);
  });
});
