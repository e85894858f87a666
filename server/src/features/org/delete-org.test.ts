import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { onePixel } from '../../../test/support/made-pictures.ts';
import { storedRows } from '../../../test/support/second-connection.ts';
import { neutral } from '../../../test/support/sign-in.ts';
import {
  type Client,
  type Json,
  organization,
  password,
  TestApp,
  type TestResponse,
} from '../../../test/support/test-app.ts';
import { addressOf } from '../../http/endpoint.ts';
import { isUpload } from '../../http/media.ts';
import { routes } from '../../routes.gen.ts';

const anId = 'a'.repeat(24);
const newUser = { fullName: 'Late', email: 'late@example.com' };

describe('DELETE /org', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  it('401, 403: no one, a member, a token without org:admin; nothing is deleted (ERR-16, SCOPE-17)', async () => {
    const member = await app.member(admin, 'grace@example.com');
    const other = await admin.token({ scopes: ['org:read', 'org:write', 'user:delete'] });
    const events = await app.events();
    const codes: string[] = [];
    for (const client of [app.anonymous, member, await member.token(), other, app.service()]) {
      const { status, body } = await client.delete('/org');
      codes.push(`${status} ${body.error.code}`);
    }
    const refused = ['403 ADMIN_REQUIRED', '403 ADMIN_REQUIRED', '403 INSUFFICIENT_SCOPE'];
    expect(codes).toEqual(['401 UNAUTHORIZED', ...refused, '401 TOKEN_INVALID']);
    expect((await admin.get('/org')).body.isDeleted).toBe(false);
    expect(await app.events()).toEqual(events);
  });

  it('200: says what was deleted, by whom and when; orgDeleted and an audit row are the last (ORG-25, EVENT-4, STORE-1)', async () => {
    const remover = await admin.token({ scopes: ['org:admin'] });
    const { _id } = (await admin.get('/org')).body;
    app.clock.advance(1_000);
    const updatedAt = new Date(app.clock.now()).toISOString();
    // A body says nothing here.
    const { status, body } = await remover.delete('/org', { isDeleted: false, deletedByUser: anId });
    expect(status).toBe(200);
    const data = { _id, isDeleted: true, deletedByUser: admin.userId, updatedAt };
    expect(body).toEqual({ message: expect.any(String), data });
    const row = storedRows(app)['organizations']?.[0];
    expect(row).toMatchObject({ id: _id, is_deleted: 1, deleted_by: admin.userId, updated_at: app.clock.now() });
    expect((await app.events()).at(-1)).toMatchObject({ event_type: 'orgDeleted', payload: { orgId: _id } });
    expect((await app.audit()).at(-1)).toMatchObject({
      action: 'org.deleted',
      org_id: _id,
      actor_user_id: admin.userId,
      actor_token_id: remover.tokenId,
      subject_id: _id,
    });
  });
});

describe('A7: after DELETE /org', () => {
  let app: TestApp;
  let callers: Record<string, Client>;
  let refreshToken: string;
  let halfSignedIn: string;
  const statusesBefore: number[] = [];
  let before: ReturnType<typeof storedRows>;

  beforeAll(async () => {
    app = await TestApp.start();
    const admin = await app.setUp();
    const member = await app.member(admin, 'grace@example.com');
    callers = { admin, member, adminsToken: await admin.token(), membersToken: await member.token() };
    // Verified once, they are in memory.
    for (const client of Object.values(callers)) statusesBefore.push((await client.get('/org')).status);
    ({ refreshToken } = (await app.signInTokens(organization.contactEmail)).body);
    const begun = await app.anonymous.post('/userAccount/initAuth', { email: organization.contactEmail });
    halfSignedIn = begun.headers.get('x-session-token') ?? '';
    // What is written behind requests is written before the rows are compared.
    const isWritten = () => storedRows(app)['personal_access_tokens']?.every((row: Json) => row.last_used_at !== null);
    await vi.waitUntil(isWritten, { timeout: 10_000 });
    await app.deleteOrganization();
    before = storedRows(app);
  });
  afterAll(() => app.close());

  /** A call that would be let through, were the organization there. */
  function knock(client: Client, { method, path, body, root }: (typeof routes)[number]): Promise<TestResponse> {
    const target = `${root ? '/' : ''}${path.replace(/:\w+/g, callers['member']?.userId ?? anId)}`;
    if (isUpload(body)) {
      const form = new FormData();
      form.append('file', new Blob([new Uint8Array(onePixel())]), 'picture');
      return client.call(method, target, { form });
    }
    const status = { status: 'configured' };
    const input = { name: 'x', userIds: [anId], ...newUser, firstName: 'X', lastName: 'X', designation: 'X' };
    return client.call(method, target, body && method !== 'GET' ? { body: { ...input, ...status } } : {});
  }

  const personal = routes.filter(({ policy }) => ['member', 'admin', 'adminOrSelf'].includes(policy.who));

  it.each(personal.map((route) => [`${route.method} ${addressOf(route)}`, route] as const))(
    '401: %s, by session and token of administrator and member (ORG-26, AUTH-24)',
    async (_, route) => {
      const responses = await Promise.all(Object.values(callers).map((client) => knock(client, route)));
      const message = 'The token is not valid';
      const error = route.isMcp
        ? { jsonrpc: '2.0', id: null, error: { code: -32_000, message, data: { code: 'TOKEN_INVALID' } } }
        : { message, error: { code: 'TOKEN_INVALID', message } };
      expect(responses.map(neutral)).toEqual(responses.map(() => ({ status: 401, body: error })));
      expect(storedRows(app)).toEqual(before);
    },
  );

  it('there are such routes, and callers who had been let in', () => {
    expect(personal.length).toBeGreaterThan(25);
    expect(statusesBefore).toEqual([200, 200, 200, 200]);
  });

  it('401: no one signs in, with a right password no more than with a wrong one (AUTH-9, ORG-26)', async () => {
    for (const email of [organization.contactEmail, 'grace@example.com']) {
      const right = await app.signInTokens(email);
      const wrong = await app.signInTokens(email, 'Wrong-Horse-7');
      expect([right.status, neutral(right)]).toEqual([401, neutral(wrong)]);
    }
    const credentials = { method: 'password', credentials: { password }, email: organization.contactEmail };
    const headers = { 'x-session-token': halfSignedIn };
    expect((await app.anonymous.post('/userAccount/authenticate', credentials, { headers })).status).toBe(401);
  });

  it('401: a refresh token of before gets no session (ORG-26, AUTH-24)', async () => {
    expect((await app.with(refreshToken).post('/userAccount/refresh/token')).status).toBe(401);
  });

  it('the organization still exists for anyone who asks, and none can be set up in its place (ORG-26)', async () => {
    expect((await app.anonymous.get('/org/exists')).body).toEqual({ exists: true });
    for (const options of [{ body: organization }, { body: {} }, { raw: '{' }]) {
      const { status, body } = await app.anonymous.call('POST', '/org', options);
      expect([status, body.error.code]).toEqual([409, 'CONFLICT']);
    }
    expect((await app.anonymous.get('/org/health')).status).toBe(200);
    expect((await app.anonymous.get('//health/ready')).status).toBe(200);
  });

  it('200: a service goes on reading events with its scoped token, and nothing else (ORG-27)', async () => {
    const service = app.service(['EVENTS_READ', 'USER_LOOKUP']);
    const { status, body } = await service.get('/events?limit=1000');
    expect([status, body.events.at(-1).eventType]).toEqual([200, 'orgDeleted']);
    expect((await service.get(`/users/email/exists?email=${organization.contactEmail}`)).status).toBe(401);
  });

  it('orgDeleted is the last event, whatever was tried since (EVENT-4)', async () => {
    const events = await app.events();
    expect(events.at(-1).event_type).toBe('orgDeleted');
    expect(events.filter(({ event_type }) => event_type === 'orgDeleted')).toHaveLength(1);
    expect(storedRows(app)).toEqual(before);
  });

  it('still deleted after a restart, with everything that ended (AUTH-31, ORG-26)', async () => {
    const { dataDir, clock } = app;
    await app.stop();
    app = await TestApp.start({ DATA_DIR: dataDir }, clock);
    for (const { credential } of Object.values(callers)) {
      expect((await app.with(credential).get('/org')).status).toBe(401);
    }
    expect((await app.anonymous.post('/org', organization)).status).toBe(409);
  });
});
