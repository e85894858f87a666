import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp } from '../../../test/support/test-app.ts';
import { apiErrors } from '../../base/api-errors.ts';

describe('POST /users', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  it('201: answers the user record (USER-3, USER-4, USER-5)', async () => {
    const given = {
      fullName: 'Alan Turing',
      email: 'alan@example.com',
      mobile: '+441234567890',
      designation: 'Logician',
    };
    const { status, body } = await admin.post('/users', given);
    expect(status).toBe(201);
    const now = '2026-11-27T20:17:00.123Z';
    const { orgId } = (await admin.get(`/users/${admin.userId}`)).body;
    expect(body).toEqual({
      ...given,
      _id: expect.stringMatching(/^[0-9a-f]{24}$/),
      id: body._id,
      slug: 'user-1003',
      emailVerifiedAt: now,
      hasLoggedIn: false,
      orgId,
      isDeleted: false,
      createdAt: now,
      updatedAt: now,
    });
  });

  it('201: only fullName and email are required (USER-4)', async () => {
    const { status, body } = await admin.post('/users', { fullName: 'E', email: 'e@example.com' });
    expect([status, body.mobile, body.designation]).toEqual([201, undefined, undefined]);
  });

  it('201: null and "" are no value for optional fields', async () => {
    const given = { fullName: 'N', email: 'n@example.com', mobile: null, designation: '' };
    const { status, body } = await admin.post('/users', given);
    expect(status).toBe(201);
    expect(Object.keys(body)).not.toContain('mobile');
    expect(Object.keys(body)).not.toContain('designation');
  });

  it('201: the new user is in everyone alone, has an event and an audit row (USER-5, EVENT-5, STORE-1)', async () => {
    const { body } = await admin.post('/users', { fullName: 'Eve Nt', email: 'Event@Example.com' });
    const groups = await app.services.db.read
      .selectFrom('group_members as m')
      .innerJoin('user_groups as g', 'g.id', 'm.group_id')
      .where('m.user_id', '=', body._id)
      .select('g.type')
      .execute();
    expect(groups).toEqual([{ type: 'everyone' }]);
    const { orgId } = body;
    const events = await app.events();
    expect(events.at(-1)).toMatchObject({
      event_type: 'userAdded',
      org_id: orgId,
      sequence: events.length,
      payload: { orgId, userId: body._id, email: 'event@example.com', fullName: 'Eve Nt', syncAction: 'immediate' },
    });
    expect((await app.audit()).at(-1)).toMatchObject({
      action: 'user.created',
      org_id: orgId,
      actor_user_id: admin.userId,
      actor_token_id: null,
      subject_id: body._id,
      network: '127.0.0.1',
    });
  });

  it('201: with a token the audit row names it too', async () => {
    const token = await admin.token({ scopes: ['user:invite'] });
    const { status, body } = await token.post('/users', { fullName: 'T', email: 'by-token@example.com' });
    expect(status).toBe(201);
    const row = (await app.audit()).at(-1);
    expect(row).toMatchObject({ actor_user_id: admin.userId, actor_token_id: token.tokenId, subject_id: body._id });
  });

  it('201: no one can sign in as the new user yet, and nothing is mailed (USER-7)', async () => {
    await admin.post('/users', { fullName: 'No Password', email: 'no-password@example.com' });
    expect((await app.signInTokens('no-password@example.com')).status).toBe(401);
  });

  it('201: the address is stored in its one spelling (USER-9)', async () => {
    const { body } = await admin.post('/users', { fullName: 'B', email: '  B.U@BÜCHER.example ' });
    expect(body.email).toBe('b.u@xn--bcher-kva.example');
  });

  it.each([
    ['the same', 'grace@example.com'],
    ['in other letters', 'GRACE@Example.COM'],
    ['with spaces around it', ' grace@example.com\t'],
    ['with a domain in full width', 'grace@ｅｘａｍｐｌｅ.com'],
    ['with another dot', 'grace@example。com'],
  ])('409: an active user has the address, %s (USER-6, USER-9, USER-10)', async (_, email) => {
    const events = await app.events();
    const { status, body } = await admin.post('/users', { fullName: 'Other', email });
    expect([status, body.error.code]).toEqual([409, 'CONFLICT']);
    expect(await app.events()).toEqual(events);
  });

  it('409: a deleted user has the address, and the text says to restore (USER-6)', async () => {
    const { body: gone } = await admin.post('/users', { fullName: 'Gone', email: 'gone@example.com' });
    await app.deleteUser(gone._id);
    const { status, body } = await admin.post('/users', { fullName: 'New', email: 'gone@example.com' });
    expect([status, body.error.code]).toEqual([409, 'CONFLICT']);
    expect(body.message).toContain('restore');
  });

  it('409: the recovery mail of another goes to the address, and of one deleted since (USER-6, USER-33)', async () => {
    const email = 'recovering@example.com';
    const user = await app.member(admin, email);
    const token = await user.token({ scopes: ['user:write'] });
    expect((await token.patch(`/users/${user.userId}/email`, { email: 'moved@example.com' })).status).toBe(200);
    const attempt = async (given: string) => {
      const before = [await app.events(), await app.audit()];
      const { status, body } = await admin.post('/users', { fullName: 'New', email: given });
      expect([await app.events(), await app.audit()]).toEqual(before);
      return [status, body.error.code, body.message];
    };
    for (const given of [email, email.toUpperCase()]) {
      expect(await attempt(given)).toEqual([409, 'CONFLICT', apiErrors.emailTaken.text]);
    }
    await app.deleteUser(user.userId);
    for (const given of [email, email.toUpperCase()]) {
      expect(await attempt(given)).toEqual([409, 'CONFLICT', apiErrors.emailOfDeletedUser.text]);
    }
  });

  it('409: of 32 at once with one address in several spellings exactly one wins (STORE-5)', async () => {
    const spellings = ['race@example.com', 'RACE@example.com', ' race@example.com', 'race@EXAMPLE.com'];
    const before = (await app.events()).length;
    const responses = await Promise.all(
      Array.from({ length: 32 }, (_, place) => admin.post('/users', { fullName: 'R', email: spellings[place % 4] })),
    );
    const statuses = responses.map(({ status }) => status).sort((a, b) => a - b);
    expect(statuses).toEqual([201, ...Array.from({ length: 31 }, () => 409)]);
    expect((await app.events()).length).toBe(before + 1);
  });

  it('a refused user uses no slug up (STORE-3)', async () => {
    const slug = async (email: string) => (await admin.post('/users', { fullName: 'S', email })).body.slug;
    const first = Number((await slug('s1@example.com')).slice(5));
    await admin.post('/users', { fullName: 'S', email: 's1@example.com' });
    expect(await slug('s2@example.com')).toBe(`user-${first + 1}`);
  });

  it.each([
    ['fullName', {}],
    ['fullName', { fullName: '' }],
    ['fullName', { fullName: ' ' }],
    ['fullName', { fullName: null }],
    ['fullName', { fullName: 'x'.repeat(256) }],
    ['email', { email: undefined }],
    ['email', { email: 'no-at.example.com' }],
    ['email', { email: 'victim,evil@evil.io' }],
    ['mobile', { mobile: '12345' }],
    ['mobile', { mobile: '1234567890123456' }],
    ['mobile', { mobile: '++1234567890' }],
    ['mobile', { mobile: '+12345 67890' }],
    ['mobile', { mobile: '+１２３４５６７８９０' }],
    ['mobile', { mobile: '+1234567890\n' }],
    ['mobile', { mobile: 1234567890 }],
    ['designation', { designation: 'x'.repeat(256) }],
    ['designation', { designation: 'a\nb' }],
  ])('400: %s %j (USER-4, USER-8, USER-13)', async (field, change) => {
    const base = field === 'fullName' && Object.keys(change).length === 0 ? {} : { fullName: 'V' };
    const { status, body } = await admin.post('/users', { email: 'v@example.com', ...base, ...change });
    expect([status, body.error.code]).toEqual([400, 'VALIDATION_ERROR']);
    expect(body.error.details.map((problem: { field: string }) => problem.field)).toEqual([`body.${field}`]);
  });

  it.each(['1234567890', '+123456789012345'])('201: the telephone number %s (USER-8)', async (mobile) => {
    const { status, body } = await admin.post('/users', { fullName: 'M', email: `m${mobile}@example.com`, mobile });
    expect([status, body.mobile]).toEqual([201, mobile]);
  });

  it('400: all that is wrong is told at once (ERR-3)', async () => {
    const { body } = await admin.post('/users', { email: 'x', mobile: 'x', designation: 7 });
    const fields = body.error.details.map((problem: { field: string }) => problem.field).sort();
    expect(fields).toEqual(['body.designation', 'body.email', 'body.fullName', 'body.mobile']);
  });

  it('403: a member, and a token without the scope (ERR-15, ERR-16)', async () => {
    const given = { fullName: 'F', email: 'f@example.com' };
    expect((await member.post('/users', given)).body.error.code).toBe('ADMIN_REQUIRED');
    const reader = await admin.token({ scopes: ['user:read', 'user:write', 'user:delete'] });
    expect((await reader.post('/users', given)).body.message).toBe('Insufficient scope. Required: user:invite');
    const inviter = await member.token({ scopes: ['user:invite'] });
    expect((await inviter.post('/users', given)).body.error.code).toBe('ADMIN_REQUIRED');
  });
});
