import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimsOf } from '../../../test/support/jwt.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';
import { catalogue } from '../../access/scopes.ts';
import { day, toTimestamp } from '../../base/clock.ts';

const path = '/personal-access-tokens';
const everyScope: string[] = catalogue.map(({ name }) => name);

describe('POST /personal-access-tokens', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  const expiryIn = (days: number) => toTimestamp(Math.floor((app.clock.now() + days * day) / 1_000) * 1_000);

  it('201: answers the token, once, with exactly the documented fields (PAT-2, PAT-3, PAT-25)', async () => {
    const { status, body } = await member.post(path, { name: ' CI ', scopes: ['org:read', 'user:read'] });
    expect(status).toBe(201);
    const { id, accessToken } = body.token;
    expect(body).toEqual({
      message: 'Personal access token created successfully',
      token: {
        id: expect.stringMatching(/^[a-f0-9]{24}$/),
        name: 'CI',
        scopes: ['org:read', 'user:read'],
        createdAt: toTimestamp(app.clock.now()),
        expiresAt: expiryIn(30),
        accessToken: expect.stringMatching(/^lkpat_eyJ[\w-]+\.[\w-]+\.[\w-]+$/),
      },
    });
    const row = await app.services.db.read
      .selectFrom('personal_access_tokens')
      .where('id', '=', id)
      .selectAll()
      .executeTakeFirstOrThrow();
    expect(JSON.stringify(row)).not.toContain(accessToken.slice('lkpat_'.length));
  });

  it('201: the token authenticates as its creator, within its scopes (PAT-1, SCOPE-1)', async () => {
    const token = await member.token({ scopes: ['org:read'] });
    expect((await token.get('/org')).status).toBe(200);
    expect((await token.get('/users')).status).toBe(403);
    expect(claimsOf(token.credential ?? '')['userId']).toBe(member.userId);
  });

  it('201: without scopes a session gets everything that is grantable, the administrator’s part included (PAT-5)', async () => {
    const { body } = await member.post(path, { name: 'all' });
    expect(body.token.scopes).toEqual(everyScope);
    const adminCall = await app.with(body.token.accessToken).get('/personal-access-tokens/admin');
    expect([adminCall.status, adminCall.body.error.code]).toEqual([400, 'ADMIN_REQUIRED']);
    const record = (await app.audit()).find(({ subject_id }) => subject_id === body.token.id);
    expect(record).toMatchObject({ action: 'token.created', actor_user_id: member.userId });
    expect(record.details).toMatchObject({ scopesDefaulted: true, expiresAt: expiryIn(30) });
  });

  it.each([30, 90, 365])('201: expires after %i days of 24 hours (PAT-7)', async (expiryDays) => {
    const { body } = await member.post(path, { name: 'x', expiryDays });
    expect(body.token.expiresAt).toBe(expiryIn(expiryDays));
    expect(claimsOf(body.token.accessToken)['exp']).toBe(Date.parse(body.token.expiresAt) / 1_000);
  });

  it('201: "never" shows as Never and has no exp (PAT-7, PAT-12, PAT-27)', async () => {
    const { body } = await member.post(path, { name: 'x', expiryDays: 'never' });
    expect(body.token.expiresAt).toBe('Never');
    expect(claimsOf(body.token.accessToken)).not.toHaveProperty('exp');
  });

  it('201: scopes named twice count once (PAT-6)', async () => {
    const { body } = await member.post(path, { name: 'x', scopes: ['org:read', 'org:read', 'email', 'org:read'] });
    expect(body.token.scopes).toEqual(['org:read', 'email']);
  });

  it('400: unknown keys are named, one by one, and never make it someone else’s token (PAT-8, CRED-2)', async () => {
    const before = (await member.get(path)).body;
    const input = { name: 'x', userId: admin.userId, ownerId: admin.userId, orgId: 'f'.repeat(24), id: 'a'.repeat(24) };
    const more = {
      parentId: 'b'.repeat(24),
      hash: 'h',
      lastUsedAt: 1,
      revokedAt: 1,
      isAdmin: true,
      expiresAt: 'Never',
    };
    const { name, ...others } = { ...input, ...more };
    for (const [key, value] of Object.entries(others)) {
      const { status, body } = await member.post(path, { name, [key]: value });
      expect([key, status, body.error.details.map(({ field }: Json) => field)]).toEqual([key, 400, [`body.${key}`]]);
    }
    expect((await member.post(path, { name, ...others })).status).toBe(400);
    expect((await member.get(path)).body).toEqual(before);
    expect((await admin.get(path)).body.tokens.filter((token: Json) => token.name === name)).toEqual([]);
  });

  it('201: the token is the caller’s own, and new (PAT-8)', async () => {
    const { body } = await member.post(path, { name: 'x' });
    expect(body.token.expiresAt).toBe(expiryIn(30));
    expect(claimsOf(body.token.accessToken)).toMatchObject({ userId: member.userId });
    const own = await member.get(path);
    expect(own.body.tokens[0].id).toBe(body.token.id);
  });

  it('201: no entity event tells of it (EVENT-19)', async () => {
    const before = await app.events();
    await member.token();
    expect(await app.events()).toEqual(before);
  });

  it('201: two of one name are two tokens (PAT-9)', async () => {
    const [one, other] = await Promise.all([member.token({ name: 'same' }), member.token({ name: 'same' })]);
    expect(one.credential).not.toBe(other.credential);
    expect(one.tokenId).not.toBe(other.tokenId);
  });

  it.each([
    ['no body', undefined],
    ['a list', []],
    ['no name', {}],
    ['a number as name', { name: 7 }],
    ['no scopes in the list', { name: 'x', scopes: [] }],
    ['a text as scopes', { name: 'x', scopes: 'org:read' }],
    ['null as scopes', { name: 'x', scopes: null }],
    ['a scope that is no text', { name: 'x', scopes: ['org:read', 7] }],
    ['an empty scope', { name: 'x', scopes: [''] }],
  ])('400 VALIDATION_ERROR: %s (PAT-4, PAT-6, HTTP-14)', async (_, body) => {
    const response = await member.post(path, body);
    expect([response.status, response.body.error.code]).toEqual([400, 'VALIDATION_ERROR']);
    expect(response.body.error.details[0].field).toMatch(/^body/);
  });

  it.each([[['org:fly']], [['org:read', 'ORG:READ']], [['org:read user:read']], [['*']]])(
    '400 INVALID_SCOPE: %j, naming what is wrong (PAT-6, ERR-12)',
    async (scopes) => {
      const { status, body } = await member.post(path, { name: 'x', scopes });
      expect([status, body.error.code]).toEqual([400, 'INVALID_SCOPE']);
      expect(body.message).toContain(scopes.at(-1));
    },
  );

  it('401: without a credential, whatever the body (AUTH-1, HTTP-6)', async () => {
    for (const raw of ['{"name":"x"}', '{', '']) {
      const { status, body } = await app.anonymous.call('POST', path, { raw });
      expect([status, body.error.code]).toEqual([401, 'UNAUTHORIZED']);
    }
  });

  it('403: a PAT without token:write, and it learns nothing of its input (SCOPE-10, HTTP-4)', async () => {
    const token = await member.token({ scopes: ['token:read', 'token:admin'] });
    const responses = await Promise.all([token.post(path, { name: 'x' }), token.post(path, { name: '' })]);
    for (const { status, body } of responses) {
      expect([status, body.message]).toEqual([403, 'Insufficient scope. Required: token:write']);
    }
  });

  it('403: a PAT cannot pass on scopes it lacks; the refusal names exactly those (SCOPE-22)', async () => {
    const token = await admin.token({ scopes: ['token:write', 'org:read'] });
    const scopes = ['org:read', 'user:read', 'token:write', 'token:admin'];
    const { status, body, headers } = await token.post(path, { name: 'x', scopes });
    expect([status, body.error.code]).toEqual([403, 'INSUFFICIENT_SCOPE']);
    expect(body.message).toBe('Insufficient scope. Required: user:read token:admin');
    expect(headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope", scope="user:read token:admin"');
  });

  it('201: a PAT passes on its own scopes when none are named (SCOPE-22)', async () => {
    const token = await admin.token({ scopes: ['token:write', 'org:read'] });
    const { body } = await token.post(path, { name: 'x' });
    expect(body.token.scopes.toSorted()).toEqual(['org:read', 'token:write']);
    const narrower = await token.post(path, { name: 'x', scopes: ['org:read'] });
    expect(narrower.body.token.scopes).toEqual(['org:read']);
  });

  it('201: a PAT’s tokens end with it at the latest, and say so (SCOPE-23)', async () => {
    const token = await admin.token({ expiryDays: 90 });
    const capped = expiryIn(90);
    for (const [expiryDays, expected] of [
      [30, expiryIn(30)],
      [365, capped],
      ['never', capped],
    ] as const) {
      const { body } = await token.post(path, { name: 'x', expiryDays });
      expect(body.token.expiresAt).toBe(expected);
      expect(claimsOf(body.token.accessToken)['exp']).toBe(Date.parse(expected) / 1_000);
    }
    const lasting = await admin.token({ expiryDays: 'never' });
    expect((await lasting.post(path, { name: 'x', expiryDays: 'never' })).body.token.expiresAt).toBe('Never');
  });

  it('415: a body that is not JSON (HTTP-16)', async () => {
    const headers = { 'content-type': 'text/plain' };
    const { status } = await member.call('POST', path, { raw: '{"name":"x"}', headers });
    expect(status).toBe(415);
  });
});
