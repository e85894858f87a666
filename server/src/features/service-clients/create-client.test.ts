import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storedRows } from '../../../test/support/second-connection.ts';
import { askToken } from '../../../test/support/service-clients.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';
import { toTimestamp } from '../../base/clock.ts';

const path = '/service-clients';
const input = { name: 'connector', scopes: ['USER_LOOKUP', 'FETCH_CONFIG'] };

let app: TestApp;
let admin: Client;
let member: Client;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
  member = await app.member(admin, 'grace@example.com');
});
afterAll(() => app.close());

const stored = async () => (await app.services.db.read.selectFrom('service_clients').selectAll().execute()).length;
const scopesOf = async (scopes: unknown) => (await admin.post(path, { name: 'x', scopes })).body.scopes;

describe('POST /service-clients', () => {
  it('201: an administrator’s session registers a service, and gets its secret (SERVICE-7)', async () => {
    const { status, body, headers } = await admin.post(path, input);
    expect(status).toBe(201);
    expect(body).toEqual({
      clientId: expect.stringMatching(/^[0-9a-f]{24}$/),
      clientSecret: expect.stringMatching(/^lks_[\w-]{43}$/),
      ...input,
      createdAt: toTimestamp(app.clock.now()),
    });
    expect(headers.get('cache-control')).toBe('no-store');
    expect((await askToken(app, body)).status).toBe(200);
  });

  it('201: a personal access token with org:admin does so too (SERVICE-7)', async () => {
    const token = await admin.token({ scopes: ['org:admin'] });
    const { status, body } = await token.post(path, input);
    expect(status).toBe(201);
    expect((await askToken(app, body)).status).toBe(200);
  });

  it('201: two services may have one name, and no two have one id or secret (SERVICE-7)', async () => {
    const made = await Promise.all(Array.from({ length: 20 }, () => admin.post(path, input)));
    expect(new Set(made.map(({ body }) => body.clientId)).size).toBe(20);
    expect(new Set(made.map(({ body }) => body.clientSecret)).size).toBe(20);
  });

  it('201: second spellings and doubles become one scope in its first spelling (SERVICE-8, SERVICE-13)', async () => {
    expect(await scopesOf(['user:lookup', 'fetch:config'])).toEqual(['USER_LOOKUP', 'FETCH_CONFIG']);
    expect(await scopesOf(['USER_LOOKUP', 'user:lookup', 'USER_LOOKUP'])).toEqual(['USER_LOOKUP']);
    const all = ['USER_LOOKUP', 'FETCH_CONFIG', 'EVENTS_READ', 'TOKEN_INTROSPECT'];
    expect(await scopesOf(all)).toEqual(all);
  });

  it.each([
    ['trimmed', '  connector  ', 'connector'],
    ['of 1 character', 'x', 'x'],
    ['of 100 characters, emoji counted as one each', '🔑'.repeat(100), '🔑'.repeat(100)],
    ['composed', 'Cafe\u0301', 'Caf\u00e9'],
    ['with markup, as it is', '<b>"x" & \\ \'y\'</b>', '<b>"x" & \\ \'y\'</b>'],
  ])('201: a name %s (SERVICE-7)', async (_, name, kept) => {
    const { status, body } = await admin.post(path, { ...input, name });
    expect([status, body.name]).toEqual([201, kept]);
  });

  it.each([
    ['no name', { scopes: input.scopes }],
    ['a name of 101 characters', { ...input, name: 'x'.repeat(101) }],
    ['an empty name', { ...input, name: '' }],
    ['a name of spaces', { ...input, name: '   ' }],
    ['a name with a line break inside', { ...input, name: 'a\nb' }],
    ['a name that turns the reading direction', { ...input, name: 'a\u202eb' }],
    ['a name that is a number', { ...input, name: 7 }],
    ['a name that is null', { ...input, name: null }],
    ['no scopes', { name: 'x' }],
    ['an empty list of scopes (SERVICE-8)', { ...input, scopes: [] }],
    ['scopes that are a text', { ...input, scopes: 'USER_LOOKUP' }],
    ['scopes that are an object', { ...input, scopes: { 0: 'USER_LOOKUP', length: 1 } }],
    ['an unknown scope', { ...input, scopes: ['USER_LOOKUP', 'ADMIN'] }],
    ['a scope of people', { ...input, scopes: ['user:read'] }],
    ['a scope in other letters', { ...input, scopes: ['user_lookup'] }],
    ['a second spelling in other letters', { ...input, scopes: ['User:Lookup'] }],
    ['a second spelling that there is not', { ...input, scopes: ['events:read'] }],
    ['two scopes in one text', { ...input, scopes: ['USER_LOOKUP FETCH_CONFIG'] }],
    ['a scope with a space', { ...input, scopes: ['USER_LOOKUP '] }],
    ['an empty scope', { ...input, scopes: [''] }],
    ['a scope that is a number', { ...input, scopes: [7] }],
    ['a name that every object has', { ...input, scopes: ['constructor'] }],
    ['a list', [input]],
    ['nothing', undefined],
  ])('400: %s, and nothing is made (SERVICE-7, SERVICE-8)', async (_, body) => {
    const before = await stored();
    const response = await admin.post(path, body);
    expect([response.status, response.body.error.code]).toEqual([400, 'VALIDATION_ERROR']);
    expect(await stored()).toBe(before);
  });

  it('401: without a credential, and by the service itself (SERVICE-2, SERVICE-7)', async () => {
    expect((await app.anonymous.post(path, input)).status).toBe(401);
    expect((await app.service(['TOKEN_INTROSPECT']).post(path, input)).status).toBe(401);
  });

  it('403: a member, and a token without org:admin, before the input is looked at (SERVICE-7, HTTP-4)', async () => {
    const before = await stored();
    const scopes = ['org:read', 'org:write', 'user:write', 'token:admin'];
    for (const body of [input, { scopes: [] }, undefined]) {
      const refused = await member.post(path, body);
      expect([refused.status, refused.body.error.code]).toEqual([403, 'ADMIN_REQUIRED']);
      const byToken = await (await admin.token({ scopes })).post(path, body);
      expect([byToken.status, byToken.body.message]).toEqual([403, 'Insufficient scope. Required: org:admin']);
      const byMembersToken = await (await member.token({ scopes: ['org:admin'] })).post(path, body);
      expect([byMembersToken.status, byMembersToken.body.error.code]).toEqual([403, 'ADMIN_REQUIRED']);
    }
    expect(await stored()).toBe(before);
  });

  it('400: fields that are no one’s to set, each named, and nothing is made (SERVICE-7, CRED-2)', async () => {
    const id = 'f'.repeat(24);
    const more = { clientId: id, id, _id: id, clientSecret: 'mine', secret_hash: 'x', orgId: id, created_by: id };
    const others = { ...more, createdAt: 0, deletedAt: 0 };
    const before = await stored();
    for (const [key, value] of Object.entries(others)) {
      const { status, body } = await admin.post(path, { ...input, [key]: value });
      expect([key, status, body.error.details.map(({ field }: Json) => field)]).toEqual([key, 400, [`body.${key}`]]);
    }
    expect((await admin.post(path, { ...input, ...others })).status).toBe(400);
    expect(await stored()).toBe(before);
  });

  it('201: the client is the caller’s (SERVICE-7)', async () => {
    const { body } = await admin.post(path, input);
    const row = await app.services.db.read
      .selectFrom('service_clients')
      .where('id', '=', body.clientId)
      .selectAll()
      .executeTakeFirstOrThrow();
    expect(row).toMatchObject({ created_by: admin.userId, created_by_token: null, deleted_at: null });
  });

  it('the secret is in this answer only: in no list, log, audit record or file (SERVICE-7, STORE-8)', async () => {
    const { body } = await admin.post(path, input);
    const secret: string = body.clientSecret;
    await askToken(app, body);
    const [record] = (await app.audit()).slice(-2);
    expect(record).toMatchObject({ action: 'service.created', subject_id: body.clientId, actor_user_id: admin.userId });
    expect(record.details).toEqual(input);
    const hidden = secret.slice(4);
    expect((await admin.get(path)).text).not.toContain(hidden);
    expect(JSON.stringify(storedRows(app))).not.toContain(hidden);
    expect(app.logLines.join('\n')).not.toContain(hidden);
    for (const name of readdirSync(app.dataDir)) {
      expect(readFileSync(join(app.dataDir, name), 'latin1').includes(hidden)).toBe(false);
    }
    const row: Json = storedRows(app)['service_clients']?.find(({ id }) => id === body.clientId);
    expect(row.secret_hash).toMatch(/^[\w-]{43}$/);
    expect(row.secret_hash).not.toBe(hidden);
  });
});
