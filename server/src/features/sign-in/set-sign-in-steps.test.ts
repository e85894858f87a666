import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { holdNext } from '../../../test/support/gates.ts';
import { SignInDesk, stepsOf } from '../../../test/support/sign-in-desk.ts';
import { type Json, TestApp } from '../../../test/support/test-app.ts';

const path = '/orgAuthConfig/updateAuthMethod';
const message = 'Sign-in methods updated successfully';

describe('POST /orgAuthConfig/updateAuthMethod', () => {
  let desk: SignInDesk;
  beforeAll(async () => {
    desk = await SignInDesk.start();
  });
  afterAll(() => desk.close());
  afterEach(() => desk.setSteps(['password', 'otp']));

  const set = (authMethod: unknown) => desk.admin.post(path, { authMethod });
  const shown = async () => (await desk.admin.get('/orgAuthConfig/authMethods')).body.authMethods;

  it.each([
    [stepsOf(['password'])],
    [stepsOf(['otp'])],
    [stepsOf(['otp', 'password'])],
    [stepsOf(['password'], ['otp'])],
    [stepsOf(['otp'], ['password'])],
    [stepsOf(['oidc', 'password'], ['otp'])],
  ])('200: %j, and initAuth offers the first step (AUTH-5, AUTH-46)', async (authMethod) => {
    const response = await set(authMethod);
    expect(response.status).toBe(200);
    expect(response.body).toEqual({ message, authMethod });
    expect(await shown()).toEqual(authMethod);
    const { body } = await desk.app.anonymous.post('/userAccount/initAuth');
    expect(body.allowedMethods).toEqual(authMethod[0]?.allowedMethods.map(({ type }) => type));
  });

  it('200 and 400: POST /orgAuthConfig does the same (FIT-79)', async () => {
    const authMethod = stepsOf(['password']);
    const { status, body } = await desk.admin.post('/orgAuthConfig', { authMethod });
    expect([status, body]).toEqual([200, { message, authMethod }]);
    expect(await shown()).toEqual(authMethod);
    expect((await desk.app.audit()).at(-1)).toMatchObject({ action: 'sign-in.steps-set' });
    const wrong = await desk.admin.post('/orgAuthConfig', { authMethod, contactEmail: 'ada@example.com' });
    expect([wrong.status, wrong.body.error.details[0].field]).toEqual([400, 'body.contactEmail']);
    const token = await desk.admin.token();
    expect((await token.post('/orgAuthConfig', { authMethod })).status).toBe(403);
    expect(await shown()).toEqual(authMethod);
  });

  it('200: steps are sorted by their order (AUTH-45, AUTH-46)', async () => {
    const [first, second] = stepsOf(['otp'], ['password']);
    expect((await set([second, first])).body.authMethod).toEqual([first, second]);
    expect(await shown()).toEqual([first, second]);
  });

  it('400: anything but one to three numbered steps of different methods, which changes nothing (AUTH-46, ERR-10)', async () => {
    const [only] = stepsOf(['password']);
    const step = (order: unknown, ...types: unknown[]) => ({ order, allowedMethods: types.map((type) => ({ type })) });
    const bad: unknown[] = [
      undefined,
      null,
      {},
      'password',
      [],
      stepsOf(['password'], ['otp'], ['oidc'], ['password']),
      [step(1)],
      [step(2, 'password')],
      [step(0, 'password')],
      [step(1.5, 'password')],
      [step('1', 'password')],
      [step(1, 'password'), step(1, 'otp')],
      [step(1, 'password'), step(3, 'otp')],
      [step(1, 'password', 'password')],
      [step(1, 'password'), step(2, 'password')],
      [step(1, 'PASSWORD')],
      [step(1, 'google')],
      [step(1, 'none')],
      [step(1, null)],
      [{ order: 1 }],
      [{ allowedMethods: only?.allowedMethods }],
      [{ order: 1, allowedMethods: ['password'] }],
      [{ order: 1, allowedMethods: 'password' }],
    ];
    const rows = (await desk.app.audit()).length;
    for (const authMethod of bad) {
      const { status, body } = await set(authMethod);
      expect([JSON.stringify(authMethod), status, body.error?.code]).toEqual([
        JSON.stringify(authMethod),
        400,
        'VALIDATION_ERROR',
      ]);
    }
    expect(await shown()).toEqual(stepsOf(['password', 'otp']));
    expect(await desk.app.audit()).toHaveLength(rows);
  });

  it('403: a member, and a personal access token whatever its scopes, whatever they send (AUTH-32, AUTH-46)', async () => {
    const member = await desk.app.member(desk.admin, 'grace@example.com');
    const token = await desk.admin.token();
    for (const body of [{ authMethod: stepsOf(['password']) }, { authMethod: 7 }]) {
      expect(await member.post(path, body)).toMatchObject({ status: 403, body: { error: { code: 'ADMIN_REQUIRED' } } });
      expect(await token.post(path, body)).toMatchObject({ status: 403, body: { error: { code: 'FORBIDDEN' } } });
    }
    expect(await shown()).toEqual(stepsOf(['password', 'otp']));
  });

  it('401: no one (AUTH-19)', async () => {
    expect((await desk.app.anonymous.post(path, { authMethod: stepsOf(['password']) })).status).toBe(401);
  });

  it('200: a row of the audit log with the steps, and no entity event (AUDIT-1)', async () => {
    const [rows, events] = [(await desk.app.audit()).length, (await desk.app.events()).length];
    await set(stepsOf(['password'], ['otp']));
    expect((await desk.app.audit()).slice(rows)).toMatchObject([
      { action: 'sign-in.steps-set', actor_user_id: desk.admin.userId, details: { steps: [['password'], ['otp']] } },
    ]);
    expect(await desk.app.events()).toHaveLength(events);
  });

  it('200: sessions that there are go on (AUTH-46)', async () => {
    const member = await desk.app.member(desk.admin, 'mary@example.com');
    await set(stepsOf(['otp']));
    expect((await member.get('/org')).status).toBe(200);
  });
});

describe('steps that would lock everyone out (AUTH-47)', () => {
  const error = { status: 400, body: { error: { code: 'BAD_REQUEST' } } };
  let app: TestApp;
  afterEach(() => app.close());

  it('400: a code without mail, a provider without one, in any step, which changes nothing', async () => {
    app = await TestApp.start();
    const admin = await app.setUp();
    for (const steps of [[['otp']], [['oidc']], [['otp', 'oidc']], [['password'], ['otp']], [['oidc'], ['password']]]) {
      const authMethod = stepsOf(...(steps as Json));
      expect(await admin.post(path, { authMethod }), JSON.stringify(steps)).toMatchObject(error);
    }
    expect((await admin.get('/orgAuthConfig/authMethods')).body.authMethods).toEqual(stepsOf(['password']));
    expect((await app.audit()).filter(({ action }) => action === 'sign-in.steps-set')).toEqual([]);
    // One usable method of a step is enough.
    expect((await admin.post(path, { authMethod: stepsOf(['otp', 'password', 'oidc']) })).status).toBe(200);
  });

  it('400: a password, by an administrator who has none', async () => {
    const desk = await SignInDesk.start();
    app = desk.app;
    const { body } = await desk.admin.post('/users', { fullName: 'Mary', email: 'mary@example.com' });
    await app.promote(body._id);
    const { body: tokens } = await desk.signIn('mary@example.com', 'otp', await desk.codeFor('mary@example.com'));
    const mary = app.with(tokens.accessToken);
    for (const steps of [stepsOf(['password']), stepsOf(['otp'], ['password'])]) {
      const refused = await mary.post(path, { authMethod: steps });
      expect(refused).toMatchObject(error);
      expect(refused.body.message).toContain('password');
    }
    expect((await mary.post(path, { authMethod: stepsOf(['otp']) })).status).toBe(200);
    await desk.mail.stop();
  });

  it('400: codes, where the stored mail server is removed while they are being asked for (AUTH-57)', async () => {
    app = await TestApp.start();
    const admin = await app.setUp();
    const mail = { host: '127.0.0.1', port: 2525, security: 'none', from: 'no-reply@example.com' };
    expect((await admin.put('/settings/smtp', mail)).status).toBe(200);
    const gate = holdNext(app.services.db, 'transaction');
    const response = admin.post(path, { authMethod: stepsOf(['otp']) });
    await gate.arrived;
    expect((await admin.delete('/settings/smtp')).status).toBe(200);
    gate.open();
    expect(await response).toMatchObject(error);
    expect((await admin.get('/orgAuthConfig/authMethods')).body.authMethods).toEqual(stepsOf(['password']));
  });

  it('409: the mail server cannot be removed while a step needs codes, and can as soon as none does (AUTH-57)', async () => {
    app = await TestApp.start();
    const admin = await app.setUp();
    const mail = { host: '127.0.0.1', port: 2525, security: 'none', from: 'no-reply@example.com' };
    expect((await admin.put('/settings/smtp', mail)).status).toBe(200);
    for (const steps of [stepsOf(['otp']), stepsOf(['password'], ['otp'])]) {
      expect((await admin.post(path, { authMethod: steps })).status).toBe(200);
      expect(await admin.delete('/settings/smtp')).toMatchObject({
        status: 409,
        body: { error: { code: 'CONFLICT' } },
      });
      expect((await admin.get('/settings/smtp')).body.configured).toBe(true);
    }
    expect((await admin.post(path, { authMethod: stepsOf(['otp', 'password']) })).status).toBe(200);
    expect((await admin.delete('/settings/smtp')).status).toBe(200);
  });

  it('200: the stored mail server can be removed where the configuration has another (AUTH-57)', async () => {
    const desk = await SignInDesk.start();
    app = desk.app;
    const mail = { host: '127.0.0.1', port: 2525, security: 'none', from: 'no-reply@example.com' };
    expect((await desk.admin.put('/settings/smtp', mail)).status).toBe(200);
    await desk.setSteps(['otp']);
    expect((await desk.admin.delete('/settings/smtp')).status).toBe(200);
    await desk.mail.stop();
  });
});
