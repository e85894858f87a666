import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { secondConnection } from '../../../test/support/second-connection.ts';
import { issuedTo, registerService } from '../../../test/support/service-clients.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

describe('GET /audit', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  let groupId: string;
  let tokenId: string;
  let clientId: string;
  let middle: string;
  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
    const token = await admin.token({ scopes: ['usergroup:read', 'usergroup:write'], name: 'Scripts' });
    tokenId = token.tokenId;
    groupId = (await token.post('/userGroups', { name: 'Research', type: 'custom' })).body._id;
    app.clock.advance(60_000);
    middle = new Date(app.clock.now()).toISOString();
    await admin.put(`/userGroups/${groupId}`, { name: 'Science' }, { headers: { 'x-request-id': 'rename-1' } });
    const service = await registerService(admin);
    clientId = service.clientId;
    await (await issuedTo(app, service)).post('/users/updateAppConfig');
    await member.post('/userAccount/password/reset', { currentPassword: 'Wrong-1234', newPassword: 'Other-Horse-8' });
  });
  afterAll(() => app.close());

  async function list(query = '', by = admin): Promise<Json> {
    const { status, body, text } = await by.get(`/audit${query}`);
    expect([status, text]).toEqual([200, expect.any(String)]);
    return body;
  }
  const actions = async (query: string) => (await list(query)).records.map(({ action }: Json) => action);

  it('200: all there is, newest first, with who, what, on what, from where, when and how (AUDIT-3, AUDIT-9, AUDIT-12)', async () => {
    const { records, nextCursor } = await list();
    const rows = (await app.audit()).reverse();
    expect(records.map(({ sequence }: Json) => sequence)).toEqual(rows.map(({ sequence }) => sequence));
    expect(nextCursor).toBeNull();
    const renamed = records.find(({ action }: Json) => action === 'group.renamed');
    expect(renamed).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{24}$/),
      sequence: expect.any(Number),
      timestamp: middle,
      action: 'group.renamed',
      outcome: 'success',
      orgId: expect.stringMatching(/^[0-9a-f]{24}$/),
      actor: { userId: admin.userId, tokenId: null, clientId: null },
      subjectId: groupId,
      subjectKind: 'group',
      subjectOwnerId: null,
      network: '127.0.0.1',
      requestId: 'rename-1',
      details: {},
      changes: { name: { before: 'Research', after: 'Science' } },
      isErased: false,
      hash: rows.find(({ action }) => action === 'group.renamed').hash,
    });
  });

  it('200: what a token, a service client and no one in particular did is told apart (AUDIT-9)', async () => {
    const { records } = await list();
    const actorOf = (action: string) => records.find((record: Json) => record.action === action).actor;
    expect(actorOf('group.created')).toEqual({ userId: admin.userId, tokenId, clientId: null });
    for (const action of ['service.token-issued', 'config.reloaded'])
      expect(actorOf(action)).toEqual({ userId: null, tokenId: null, clientId });
    expect(actorOf('token.created')).toEqual({ userId: admin.userId, tokenId: null, clientId: null });
    const started = records.find((record: Json) => record.action === 'session.started');
    expect(started).toMatchObject({ subjectKind: 'session', subjectOwnerId: member.userId });
  });

  it('200: filtered by the user, the token and the service client that acted (AUDIT-12)', async () => {
    expect(await actions(`?actor=${member.userId.toUpperCase()}`)).toEqual(['password.changed', 'session.started']);
    expect(await actions(`?token=${tokenId}`)).toEqual(['group.created']);
    expect(await actions(`?client=${clientId}`)).toEqual(['config.reloaded', 'service.token-issued']);
    expect(await actions(`?actor=${groupId}`)).toEqual([]);
  });

  it('200: filtered by an action, and by all of an area (AUDIT-12)', async () => {
    expect(await actions('?action=group.created')).toEqual(['group.created']);
    expect(await actions('?action=group.')).toEqual(['group.renamed', 'group.created']);
    expect(await actions('?action=token.')).toEqual(['token.created']);
    expect(await actions('?action=of-a-later.release')).toEqual([]);
  });

  it('200: filtered by subject, outcome and time, the end of which is left out (AUDIT-12)', async () => {
    expect(await actions(`?subject=${groupId}`)).toEqual(['group.renamed', 'group.created']);
    expect(await actions('?outcome=failure')).toEqual(['password.changed']);
    const after = await actions(`?from=${middle}`);
    const before = await actions(`?to=${middle}`);
    expect([after.at(-1), before[0]]).toEqual(['group.renamed', 'group.created']);
    expect([...after, ...before]).toEqual(await actions(''));
    expect(await actions(`?from=${middle}&to=${middle}`)).toEqual([]);
  });

  it('200: all filters at once have to hold', async () => {
    const all = `?actor=${admin.userId}&subject=${groupId}&action=group.&outcome=success&from=2000-01-01`;
    expect(await actions(all)).toEqual(['group.renamed', 'group.created']);
    expect(await actions(`${all}&token=${tokenId}`)).toEqual(['group.created']);
    expect(await actions(`${all}&client=${clientId}`)).toEqual([]);
  });

  it('200: page by page, each record once, whatever is written meanwhile (AUDIT-12)', async () => {
    const whole = (await list()).records.map(({ sequence }: Json) => sequence);
    const paged: number[] = [];
    for (let cursor = ''; ; ) {
      const { records, nextCursor } = await list(`?limit=2${cursor}`);
      expect(records.length).toBeLessThanOrEqual(2);
      paged.push(...records.map(({ sequence }: Json) => sequence));
      if (nextCursor === null) break;
      cursor = `&cursor=${nextCursor}`;
      await admin.patch('/org', { shortName: `E${paged.length}` });
    }
    expect(paged).toEqual(whole);
  });

  it('200: a page that holds just what is left is the last one', async () => {
    const count = (await list('?action=group.')).records.length;
    expect((await list(`?action=group.&limit=${count}`)).nextCursor).toBeNull();
    expect((await list(`?action=group.&limit=${count - 1}`)).nextCursor).not.toBeNull();
  });

  it('200: what concerns the system is in it, and what concerns another organization is not', async () => {
    const store = secondConnection(app);
    const count = (await list('?limit=200')).records.length;
    store.prepare("UPDATE audit_log SET org_id = ? WHERE action = 'group.created'").run('f'.repeat(24));
    expect(await actions('?action=group.')).toEqual(['group.renamed']);
    expect((await list('?limit=200')).records).toHaveLength(count - 1);
    const orgId = (await admin.get('/org')).body._id;
    store.prepare("UPDATE audit_log SET org_id = ? WHERE action = 'group.created'").run(orgId);
    store.close();
    expect((await list('?action=config.')).records).toMatchObject([{ orgId: null }]);
  });

  it.each([
    ['?limit=0'],
    ['?limit=201'],
    ['?limit=1e1'],
    ['?cursor=x'],
    ['?cursor=1'],
    ['?cursor=1.2.3'],
    ['?actor=ada'],
    ['?subject=1'],
    ['?action=group'],
    ['?action=group.%25'],
    ['?action=.created'],
    ['?action=Group.created'],
    ['?outcome=maybe'],
    ['?from=yesterday'],
    ['?to=2026-13-01'],
  ])('400: %s', async (query) => {
    const { status, body } = await admin.get(`/audit${query}`);
    expect([status, body.error.code]).toEqual([400, 'VALIDATION_ERROR']);
  });

  it('200: for a token with org:admin; 403 with all other scopes, and for members whatever they ask (AUDIT-3, SCOPE-17, A1)', async () => {
    const scopes = (await admin.get('/personal-access-tokens/scopes')).body.scopes.map(({ name }: Json) => name);
    const others = await admin.token({ scopes: scopes.filter((name: string) => name !== 'org:admin') });
    const right = await admin.token({ scopes: ['org:admin'] });
    for (const path of ['/audit', '/audit/export']) {
      expect((await right.get(path)).status).toBe(200);
      expect((await others.get(`${path}?actor=x`)).body.error.code).toBe('INSUFFICIENT_SCOPE');
      expect((await member.get(`${path}?actor=x`)).body.error.code).toBe('ADMIN_REQUIRED');
      expect((await app.anonymous.get(path)).status).toBe(401);
      expect((await app.service().get(path)).status).toBe(401);
    }
  });
});
