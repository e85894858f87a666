import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { holdNext } from '../../../test/support/gates.ts';
import { secondConnection, storedRows } from '../../../test/support/second-connection.ts';
import { askToken, introspect, issuedTo, registerService } from '../../../test/support/service-clients.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

const absent = 'f'.repeat(24);
const path = (id: string) => `/service-clients/${id}`;

let app: TestApp;
let admin: Client;
let lookUp: string;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
  lookUp = `/users/internal/${admin.userId}`;
});
afterAll(() => app.close());

const listed = async (id: string) =>
  (await admin.get('/service-clients')).body.clients.some(({ clientId }: Json) => clientId === id);

describe('DELETE /service-clients/:clientId', () => {
  it('200: ends the service and every token that it got, at their next verification (SERVICE-10)', async () => {
    const service = await registerService(admin);
    const other = await registerService(admin);
    const holders = [await issuedTo(app, service), await issuedTo(app, service, { scope: 'USER_LOOKUP' })];
    const others = await issuedTo(app, other);
    const { status, body } = await admin.delete(path(service.clientId));
    expect([status, body]).toEqual([200, { message: 'Service client deleted successfully' }]);
    for (const holder of holders) {
      expect(await holder.get(lookUp)).toMatchObject({ status: 401, body: { error: { code: 'TOKEN_INVALID' } } });
      expect((await introspect(app, other, holder.credential)).body).toEqual({ active: false });
    }
    expect(await askToken(app, service)).toMatchObject({ status: 401, body: { error: 'invalid_client' } });
    expect(await listed(service.clientId)).toBe(false);
    expect([(await others.get(lookUp)).status, await listed(other.clientId)]).toEqual([200, true]);
  });

  it('200: tells it in the audit log, and in no entity event (SERVICE-10, EVENT-19)', async () => {
    const { clientId } = await registerService(admin);
    const before = await app.events();
    await admin.delete(path(clientId));
    const record = (await app.audit()).at(-1);
    expect(record).toMatchObject({ action: 'service.deleted', subject_id: clientId, actor_user_id: admin.userId });
    expect(await app.events()).toEqual(before);
  });

  it('200: by a token with org:admin, the id in upper case (SERVICE-10, HTTP-20)', async () => {
    const service = await registerService(admin);
    const token = await admin.token({ scopes: ['org:admin'] });
    expect((await token.delete(path(service.clientId.toUpperCase()))).status).toBe(200);
    expect((await askToken(app, service)).status).toBe(401);
  });

  it('200: with 50 requests in flight none succeeds that begins after the answer (SERVICE-10)', async () => {
    const service = await registerService(admin);
    const holder = await issuedTo(app, service);
    const calls: { readonly startedMs: number; readonly status: number }[] = [];
    let doneMs = Number.POSITIVE_INFINITY;
    let after = 0;
    const worker = async () => {
      while (after < 100) {
        const startedMs = performance.now();
        if (startedMs > doneMs) after += 1;
        calls.push({ startedMs, status: (await holder.get(lookUp)).status });
      }
    };
    const workers = Array.from({ length: 50 }, worker);
    await expect.poll(() => calls.length, { timeout: 15_000, interval: 1 }).toBeGreaterThan(50);
    expect((await admin.delete(path(service.clientId))).status).toBe(200);
    doneMs = performance.now();
    await Promise.all(workers);
    const late = calls.filter(({ startedMs }) => startedMs > doneMs);
    expect(late.length).toBeGreaterThanOrEqual(100);
    expect(new Set(late.map(({ status }) => status))).toEqual(new Set([401]));
    expect(calls.some(({ status }) => status === 200)).toBe(true);
  });

  it('401: at once when another process ends the service (SERVICE-10, AUTH-27)', async () => {
    const service = await registerService(admin);
    const holder = await issuedTo(app, service);
    expect((await holder.get(lookUp)).status).toBe(200);
    const store = secondConnection(app);
    store.prepare('UPDATE service_clients SET deleted_at = 1 WHERE id = ?').run(service.clientId);
    store.close();
    expect((await holder.get(lookUp)).status).toBe(401);
    expect((await askToken(app, service)).status).toBe(401);
  });

  it('401: no token is issued to a service that ends between the proof and the writing (SERVICE-10)', async () => {
    const service = await registerService(admin);
    const tokens = () =>
      storedRows(app)['service_tokens']?.filter(({ client_id }) => client_id === service.clientId).length;
    // The gate itself changes nothing.
    const gate = holdNext(app.services.keys, 'sign');
    const good = askToken(app, service);
    await gate.arrived;
    gate.open();
    expect([(await good).status, tokens()]).toEqual([200, 1]);

    const held = holdNext(app.services.keys, 'sign');
    const asked = askToken(app, service);
    await held.arrived;
    expect((await admin.delete(path(service.clientId))).status).toBe(200);
    held.open();
    expect(await asked).toMatchObject({ status: 401, body: { error: 'invalid_client' } });
    expect(tokens()).toBe(1);
    expect((await app.audit()).at(-1)).toMatchObject({ action: 'service.deleted' });
  });

  it.each(['a'.repeat(23), 'a'.repeat(25), 'g'.repeat(24), '%00'])('400: the id %s (HTTP-19)', async (id) => {
    expect((await admin.delete(path(id))).status).toBe(400);
  });

  it('401 and 403: no one, a member, a narrow token, the service itself; the service lives on (SERVICE-10)', async () => {
    const service = await registerService(admin);
    const member = await app.member(admin, 'grace@example.com');
    const narrow = await admin.token({ scopes: ['org:write'] });
    const holder = await issuedTo(app, service);
    const callers = [app.anonymous, holder, member, narrow];
    const statuses = await Promise.all(callers.map(async (by) => (await by.delete(path(service.clientId))).status));
    expect(statuses).toEqual([401, 401, 403, 403]);
    expect((await holder.get(lookUp)).status).toBe(200);
  });

  it('404: absent, deleted already, of another kind, or ended with the token that made it (SERVICE-10, SERVICE-18)', async () => {
    const { clientId } = await registerService(admin);
    await admin.delete(path(clientId));
    const token = await admin.token();
    const theirs = await registerService(token);
    await admin.delete(`/personal-access-tokens/${token.tokenId}`);
    const before = (await app.audit()).length;
    for (const id of [absent, clientId, admin.userId, theirs.clientId]) {
      const response = await admin.delete(path(id));
      expect([response.status, response.body.error.code]).toEqual([404, 'NOT_FOUND']);
    }
    expect((await app.audit()).length).toBe(before);
  });
});
