import { afterEach, describe, expect, it, vi } from 'vitest';
import { recordRejection } from '../../src/features/sign-in/public.ts';
import { type Client, type Json, password, TestApp } from '../support/test-app.ts';

const email = 'grace@example.com';
const wrong = 'Wrong-Horse-1';

describe('refused sign-ins in the audit log (AUDIT-9)', () => {
  let app: TestApp;
  let member: Client;
  afterEach(() => app.close());
  async function start(environment: Record<string, string> = {}): Promise<Client> {
    app = await TestApp.start(environment);
    const admin = await app.setUp();
    member = await app.member(admin, email);
    return admin;
  }
  /** Waits for a number of records written after responses, and returns them. */
  async function refusals(count: number): Promise<Json[]> {
    const found = async () => (await app.audit()).filter(({ action }) => action === 'sign-in.refused');
    await vi.waitUntil(async () => (await found()).length >= count, { timeout: 20_000 });
    return found();
  }
  /** One try; answers status and body without the id of the request. */
  async function attempt(address: string, method: string, credentials: Json) {
    const begun = await app.anonymous.post('/userAccount/initAuth', { email: address });
    const headers = { 'x-session-token': begun.headers.get('x-session-token') ?? '' };
    const body = { method, credentials, email: address };
    const { status, body: response } = await app.anonymous.post('/userAccount/authenticate', body, { headers });
    return [status, { ...response, error: { ...response.error, requestId: '' } }];
  }

  it('401: each is recorded behind its answer, by method and class of reason, and all answers are one (AUTH-9)', async () => {
    const admin = await start();
    const orgId = (await admin.get('/org')).body._id;
    const responses = [
      await attempt(email, 'password', { password: wrong }),
      await attempt('nobody@example.com', 'password', { password: wrong }),
      await attempt(email, 'otp', { otp: '123456' }),
      await attempt(email, 'no-such-method', {}),
    ];
    for (const response of responses) expect(response).toEqual(responses[0]);
    expect(responses[0]?.[0]).toBe(401);
    const same = { outcome: 'failure', actor_user_id: null, actor_token_id: null, network: '127.0.0.1', org_id: orgId };
    const told = (subject_id: string | null, method: string | null, reason: string) => ({
      ...same,
      subject_id,
      details: { method, reason },
      changes: {},
    });
    expect(await refusals(4)).toMatchObject([
      told(member.userId, 'password', 'wrong-password'),
      told(null, 'password', 'unknown-address'),
      told(member.userId, null, 'method-not-allowed'),
      told(member.userId, null, 'method-not-allowed'),
    ]);
  });

  it('401: nothing that a stranger typed is written down, neither address nor password (AUDIT-8)', async () => {
    await start();
    await attempt('stranger-4711@example.net', 'password', { password: 'Typed-Secret-4711' });
    await attempt(email, 'password', { password: 'Typed-Secret-4711' });
    const rows = JSON.stringify(await refusals(2));
    for (const typed of ['stranger', '4711', email]) expect(rows).not.toContain(typed);
  });

  it('401: a code that is wrong is told from a password that is (AUDIT-9)', async () => {
    const admin = await start({ SMTP_URL: 'smtp://127.0.0.1:9' });
    const step = (order: number, type: string) => ({ order, allowedMethods: [{ type }] });
    const { status } = await admin.post('/orgAuthConfig/updateAuthMethod', {
      authMethod: [step(1, 'otp'), step(2, 'password')],
    });
    expect(status).toBe(200);
    await attempt(email, 'otp', { otp: '123456' });
    expect((await refusals(1))[0]).toMatchObject({ details: { method: 'otp', reason: 'wrong-code' } });
  });

  it('401: a right proof that came too late is told as such', async () => {
    await start();
    const { db } = app.services;
    const transaction = db.transaction.bind(db);
    const deleting = vi.spyOn(db, 'transaction').mockImplementationOnce(async (work) => {
      await transaction(async (tx) =>
        tx.updateTable('users').set({ is_deleted: 1 }).where('id', '=', member.userId).execute(),
      );
      return transaction(work);
    });
    expect((await attempt(email, 'password', { password }))[0]).toBe(401);
    deleting.mockRestore();
    expect((await refusals(1))[0]).toMatchObject({ subject_id: member.userId, details: { reason: 'no-longer-valid' } });
  });

  it('429: who has to wait is not recorded (ERR-24)', async () => {
    await start({ RATE_LIMIT: 'on' });
    const statuses: unknown[] = [];
    for (let tried = 0; tried < 7; tried += 1) {
      statuses.push((await attempt(email, 'password', { password: wrong }))[0]);
    }
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429]);
    expect(await refusals(5)).toHaveLength(5);
  });

  it('a flood from everywhere does not fill the log: 600 in a minute, in all', async () => {
    const admin = await start({ RATE_LIMIT: 'on' });
    const orgId = (await admin.get('/org')).body._id;
    const refuse = (place: number) =>
      recordRejection(app.services, {
        orgId,
        userId: null,
        method: 'password',
        origin: { requestId: 'flood', network: `192.0.2.${place % 256}` },
      });
    for (let place = 0; place < 700; place += 1) expect(refuse(place).status).toBe(401);
    expect(await refusals(600)).toHaveLength(600);
    app.clock.advance(60_000);
    refuse(0);
    expect(await refusals(601)).toHaveLength(601);
  });
});
