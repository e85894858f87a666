import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { holdNext } from '../../../test/support/gates.ts';
import { storedRows } from '../../../test/support/second-connection.ts';
import { askToken, issuedTo, type RegisteredService, registerService } from '../../../test/support/service-clients.ts';
import { type Client, type Json, TestApp, type TestResponse } from '../../../test/support/test-app.ts';
import { toTimestamp } from '../../base/clock.ts';

let app: TestApp;
let admin: Client;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
});
afterAll(() => app.close());

const rotate = ({ clientId }: { clientId: string }, body?: unknown, by = admin): Promise<TestResponse> =>
  by.post(`/service-clients/${clientId}/rotate`, body);
const withSecret = ({ clientId }: RegisteredService, { body }: TestResponse) => ({ clientId, ...body });
const statusFor = async (service: RegisteredService) => (await askToken(app, service)).status;
const listed = async ({ clientId }: RegisteredService) =>
  (await admin.get('/service-clients')).body.clients.find((one: Json) => one.clientId === clientId);

describe('POST /service-clients/:clientId/rotate', () => {
  it.each([
    ['no body', undefined],
    ['an empty object', {}],
    ['a grace of 0', { graceSeconds: 0 }],
  ])('200: with %s the secret before, and its tokens, end at once (LEAVER-7, LEAVER-8)', async (_, body) => {
    const old = await registerService(admin);
    const other = await registerService(admin);
    const [token, othersToken] = [await issuedTo(app, old), await issuedTo(app, other)];
    const response = await rotate(old, body);
    expect([response.status, response.body]).toEqual([200, { clientSecret: expect.stringMatching(/^lks_[\w-]{43}$/) }]);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect([await statusFor(old), await statusFor(withSecret(old, response)), await statusFor(other)]).toEqual([
      401, 200, 200,
    ]);
    expect([(await token.get('/events')).status, (await othersToken.get('/events')).status]).toEqual([401, 200]);
    const record = (await app.audit()).findLast(({ action }) => action === 'service.secret-rotated');
    expect(record).toMatchObject({
      subject_id: old.clientId,
      actor_user_id: admin.userId,
      details: { graceSeconds: 0 },
    });
  });

  it('200: with a grace both secrets count, and the earlier one ends to the millisecond (LEAVER-8)', async () => {
    const old = await registerService(admin);
    const before = await issuedTo(app, old);
    const next = withSecret(old, await rotate(old, { graceSeconds: 60 }));
    const untilMs = app.clock.now() + 60_000;
    expect((await listed(old)).earlierSecretUntil).toBe(toTimestamp(untilMs));
    const meanwhile = await askToken(app, old);
    expect(meanwhile.body.expires_in).toBeLessThanOrEqual(60);
    const byNext = await issuedTo(app, next);
    app.clock.set(untilMs - 1);
    expect([await statusFor(old), await statusFor(next), (await before.get('/events')).status]).toEqual([
      200, 200, 200,
    ]);
    app.clock.set(untilMs);
    expect([await statusFor(old), await statusFor(next)]).toEqual([401, 200]);
    for (const token of [before, app.with(meanwhile.body.access_token)]) {
      expect(await token.get('/events')).toMatchObject({ status: 401, body: { error: { code: 'TOKEN_EXPIRED' } } });
    }
    expect((await byNext.get('/events')).status).toBe(200);
    expect((await listed(old)).earlierSecretUntil).toBeNull();
  });

  it('200: a second rotation ends every earlier secret but the last, and that one without a grace (LEAVER-8)', async () => {
    const first = await registerService(admin);
    const second = withSecret(first, await rotate(first, { graceSeconds: 86_400 }));
    const third = withSecret(first, await rotate(first, { graceSeconds: 10 }));
    expect([await statusFor(first), await statusFor(second), await statusFor(third)]).toEqual([401, 200, 200]);
    const fourth = withSecret(first, await rotate(first));
    expect([await statusFor(second), await statusFor(third), await statusFor(fourth)]).toEqual([401, 401, 200]);
    expect(await statusFor({ ...first, clientSecret: '' })).toBe(401);
  });

  it.each([
    { graceSeconds: -1 },
    { graceSeconds: 86_401 },
    { graceSeconds: 1.5 },
    { graceSeconds: '60' },
    { graceSeconds: null },
    { grace: 60 },
    { graceSeconds: 60, clientSecret: 'chosen' },
    [],
  ])('400: %j, and nothing is changed (LEAVER-7)', async (body) => {
    const old = await registerService(admin);
    const before = storedRows(app)['service_clients'];
    expect((await rotate(old, body)).status).toBe(400);
    expect(storedRows(app)['service_clients']).toEqual(before);
  });

  it('403 and 404: anyone who may not, and what is not there (LEAVER-7)', async () => {
    const known = await registerService(admin);
    const member = await app.member(admin, 'grace@example.com');
    const narrow = await admin.token({ scopes: ['org:read', 'org:write'] });
    const memberToken = await member.token({ scopes: ['org:admin'] });
    for (const by of [member, narrow, memberToken]) expect((await rotate(known, {}, by)).status).toBe(403);
    expect((await rotate(known, {}, app.anonymous)).status).toBe(401);
    expect((await rotate(known, {}, await issuedTo(app, known))).status).toBe(401);
    const gone = await registerService(admin);
    await admin.delete(`/service-clients/${gone.clientId}`);
    for (const clientId of [gone.clientId, admin.userId, 'f'.repeat(24)]) {
      expect((await rotate({ clientId })).status).toBe(404);
    }
    expect(await statusFor(known)).toBe(200);
  });

  it('403: a token takes no hold of a service that would outlive it; its own it rotates (LEAVER-7, SERVICE-18)', async () => {
    const token = await admin.token({ scopes: ['org:admin'] });
    const other = await admin.token({ scopes: ['org:admin'] });
    const [ofSession, own] = [await registerService(admin), await registerService(token)];
    expect((await rotate(ofSession, {}, token)).body.error.code).toBe('FORBIDDEN');
    expect((await rotate(own, {}, other)).body.error.code).toBe('FORBIDDEN');
    expect(await statusFor(ofSession)).toBe(200);
    const next = withSecret(own, await rotate(own, {}, token));
    expect(await statusFor(next)).toBe(200);
    await admin.delete(`/personal-access-tokens/${token.tokenId}`);
    expect(await statusFor(next)).toBe(401);
  });

  it('401: a token that the earlier secret was proved for before, and that would be written after (LEAVER-8)', async () => {
    const old = await registerService(admin);
    const gate = holdNext(app.services.db, 'transaction');
    const asked = askToken(app, old);
    await gate.arrived;
    const next = withSecret(old, await rotate(old));
    gate.open();
    expect((await asked).status).toBe(401);
    expect(await statusFor(next)).toBe(200);
  });
});
