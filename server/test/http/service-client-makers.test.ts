import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { holdNext } from '../support/gates.ts';
import { claimsOf } from '../support/jwt.ts';
import { askToken, introspect, issuedTo, type RegisteredService, registerService } from '../support/service-clients.ts';
import { type Client, type Json, TestApp } from '../support/test-app.ts';

const dayMs = 86_400_000;

describe('a service client that a personal access token made', () => {
  let app: TestApp;
  let admin: Client;
  let lookUp: string;
  let asking: RegisteredService;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    lookUp = `/users/internal/${admin.userId}`;
    asking = await registerService(admin);
  });
  afterAll(() => app.close());

  /**
   * Returns whether a service is active: listed, given tokens, and with one that verification and introspection accept.
   */
  async function signsOfLife(service: RegisteredService, holder: Client) {
    const owner = await app.signIn('ada@example.com');
    const { clients } = (await owner.get('/service-clients')).body;
    return {
      isListed: clients.some(({ clientId }: Json) => clientId === service.clientId),
      asked: (await askToken(app, service)).status,
      used: (await holder.get(lookUp)).status,
      isActive: (await introspect(app, asking, holder.credential ?? '')).body.active,
    };
  }
  const alive = { isListed: true, asked: 200, used: 200, isActive: true };
  const dead = { isListed: false, asked: 401, used: 401, isActive: false };

  async function madeBy(maker: Client) {
    const service = await registerService(maker);
    const holder = await issuedTo(app, service);
    expect(await signsOfLife(service, holder)).toEqual(alive);
    return () => signsOfLife(service, holder);
  }

  it('ends when the token is revoked, and no other service does (SERVICE-18)', async () => {
    const maker = await admin.token({ scopes: ['org:admin'] });
    const sibling = await admin.token({ scopes: ['org:admin'] });
    const [state, siblings, sessions] = [await madeBy(maker), await madeBy(sibling), await madeBy(admin)];
    expect((await admin.delete(`/personal-access-tokens/${maker.tokenId}`)).status).toBe(200);
    expect([await state(), await siblings(), await sessions()]).toEqual([dead, alive, alive]);
  });

  it('ends when the token revokes itself, or an administrator revokes it (SERVICE-18)', async () => {
    for (const kind of ['', 'admin/']) {
      const maker = await admin.token();
      const state = await madeBy(maker);
      const by = kind === '' ? maker : admin;
      expect((await by.delete(`/personal-access-tokens/${kind}${maker.tokenId}`)).status).toBe(200);
      expect(await state()).toEqual(dead);
    }
  });

  it('ends when what made the token is revoked, however far up (SERVICE-18, SCOPE-24)', async () => {
    const root = await admin.token();
    const maker = await (await root.token()).token();
    const state = await madeBy(maker);
    await admin.delete(`/personal-access-tokens/${root.tokenId}`);
    expect(await state()).toEqual(dead);
  });

  it('ends when the owner of the token is deleted, and stays so when that person is restored (SERVICE-18, AUTH-40)', async () => {
    const owner = await app.member(admin, 'grace@example.com');
    await app.promote(owner.userId);
    const [byToken, bySession] = [await madeBy(await owner.token()), await madeBy(owner)];
    await app.demote(owner.userId);
    await app.deleteUser(owner.userId);
    // A client that a user registers in a session belongs to the organization.
    expect([await byToken(), await bySession()]).toEqual([dead, alive]);
    expect((await admin.post(`/users/${owner.userId}/restore`)).status).toBe(200);
    expect(await byToken()).toEqual(dead);
  });

  it('ends when the token is expired, to the millisecond, its own tokens too (SERVICE-18)', async () => {
    const own = await TestApp.start();
    const owner = await own.setUp();
    const maker = await owner.token({ expiryDays: 30 });
    // Tokens count in whole seconds.
    const endMs = Math.floor(own.clock.now() / 1_000) * 1_000 + 30 * dayMs;
    const service = await registerService(maker);
    own.clock.set(endMs - 60_000);
    const holder = await issuedTo(own, service);
    const { body } = await askToken(own, service);
    expect([body.expires_in, claimsOf(body.access_token)['exp']]).toEqual([60, endMs / 1_000]);
    const late = await own.signIn('ada@example.com');
    const byLate = await registerService(late);
    const state = async () => [
      (await late.get('/service-clients')).body.clients.some(({ clientId }: Json) => clientId === service.clientId),
      (await askToken(own, service)).status,
      (await holder.get(`/users/internal/${owner.userId}`)).status,
      (await introspect(own, byLate, holder.credential)).body.active,
    ];
    own.clock.set(endMs - 1);
    expect(await state()).toEqual([true, 200, 200, true]);
    own.clock.set(endMs);
    expect(await state()).toEqual([false, 401, 401, false]);
    // Nor does it come back when the token has been forgotten.
    await own.services.db.transaction(async (tx) => {
      await tx.deleteFrom('personal_access_tokens').where('id', '=', maker.tokenId).execute();
    });
    expect(await state()).toEqual([false, 401, 401, false]);
    await own.close();
  });

  it('lives on when only the scopes of the token are narrowed (SERVICE-18)', async () => {
    const state = await madeBy(await admin.token({ scopes: ['org:admin'] }));
    app.environment['MCP_SCOPES'] = 'org:read';
    app.services.reloadConfig();
    expect(await state()).toEqual(alive);
    app.environment['MCP_SCOPES'] = '';
    app.services.reloadConfig();
  });

  it('401, and none is made, by a token that is revoked between the proof and the writing (SERVICE-18, STORE-7)', async () => {
    const count = async () => (await admin.get('/service-clients')).body.clients.length;
    const input = { name: 'late', scopes: ['USER_LOOKUP'] };
    const maker = await admin.token();
    // The gate itself changes nothing.
    const open = holdNext(app.services.db, 'transaction');
    const good = maker.post('/service-clients', input);
    await open.arrived;
    open.open();
    expect((await good).status).toBe(201);

    const before = await count();
    const gate = holdNext(app.services.db, 'transaction');
    const made = maker.post('/service-clients', input);
    await gate.arrived;
    expect((await admin.delete(`/personal-access-tokens/${maker.tokenId}`)).status).toBe(200);
    gate.open();
    expect(await made).toMatchObject({ status: 401, body: { error: { code: 'TOKEN_REVOKED' } } });
    // The first one ended with the token, too.
    expect(await count()).toBe(before - 1);
  });
});
