import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addressOf } from '../../src/http/endpoint.ts';
import { isUpload } from '../../src/http/media.ts';
import { routes } from '../../src/routes.gen.ts';
import { onePixel } from '../support/made-pictures.ts';
import { rowsOf, secondConnection, tableNames } from '../support/second-connection.ts';
import { neutral } from '../support/sign-in.ts';
import { type Client, type Json, organization, TestApp } from '../support/test-app.ts';

/** Every row of every table. */
function wholeStore(app: TestApp): Json {
  const store = secondConnection(app);
  const rows = Object.fromEntries(tableNames(store).map((table) => [table, rowsOf(store, table)]));
  store.close();
  return rows;
}

const hex = (digits: number) => 'a'.repeat(digits);

describe('abuse of authorization', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  let gone: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
    gone = await app.member(admin, 'removed@example.com');
    await app.deleteUser(gone.userId);
  });
  afterAll(() => app.close());

  describe('A1: a member on every administrator route learns and changes nothing (HTTP-4)', () => {
    const administrators = routes.filter(({ policy }) => policy.who === 'admin');
    const targets = administrators.map((route) => [route.method, addressOf(route), route] as const);
    /** Valid for one route or another, or for none. */
    const bodies = [
      undefined,
      '{}',
      '{',
      '{"fullName":"Eve","email":"eve@example.com"}',
      '{"reason":7}',
      '[]',
      '"',
      '{"status":"skipped"}',
      '{"status":"none"}',
      '{"shortName":"Eve","contactEmail":"eve@example.com","permanentAddress":null}',
      '{"contactEmail":7}',
    ];
    const queries = ['', '?page=0', '?limit=-1', '?__proto__=1', '?status=none', `?userId=${hex(3)}`];
    const types = ['text/plain', 'application/json', 'application/json', 'multipart/form-data', 'x'];

    function form(name: string, bytes: Buffer): FormData {
      const made = new FormData();
      made.append(name, new Blob([new Uint8Array(bytes)], { type: 'image/png' }), 'a.png');
      return made;
    }

    it.each(targets)('%s %s', async (method, address, { policy, body }) => {
      const { tokenId } = await admin.token();
      const before = wholeStore(app);
      const own = [member.userId, admin.userId, gone.userId];
      const ids = [tokenId, ...own, hex(24), hex(23), '%00', 'not-an-id', member.userId.toUpperCase()];
      const tries = Array.from({ length: 45 }, (_, place) => {
        const raw = method === 'GET' ? undefined : bodies[place % bodies.length];
        const headers = { 'content-type': types[place % types.length] ?? '' };
        const id = ids[place % ids.length] ?? '';
        const path = address.replace(/:\w+/, id) + (queries[place % queries.length] ?? '');
        return { path, options: raw === undefined ? {} : { raw, headers } };
      });
      const forms = ['file', 'wrong'].flatMap((name) => [form(name, onePixel()), form(name, Buffer.alloc(0))]);
      const uploads = isUpload(body) ? forms.map((one) => ({ path: address, options: { form: one } })) : [];
      const called = [...tries, ...uploads].map(({ path, options }) => member.call(method, `/${path}`, options));
      const responses = (await Promise.all(called)).map(neutral);
      const status = 'adminFirst' in policy && policy.adminFirst ? 400 : 403;
      const message = 'Admin access required';
      const error = { status, body: { message, error: { code: 'ADMIN_REQUIRED', message } } };
      expect(responses).toEqual(responses.map(() => error));
      expect(wholeStore(app)).toEqual(before);
    });

    it('there are such routes', () => {
      expect(targets.length).toBeGreaterThanOrEqual(12);
      expect(administrators.some(({ body }) => isUpload(body))).toBe(true);
    });

    const shared = routes.filter(({ policy }) => policy.who === 'adminOrSelf');
    it.each(shared.map((route) => [route.method, addressOf(route)] as const))(
      '%s %s: the same for everyone but oneself, whether there or not (AUTH-30, ERR-17)',
      async (method, address) => {
        const before = wholeStore(app);
        const group = before.user_groups[0].id;
        const ids = [admin.userId, admin.userId.toUpperCase(), group, hex(24), hex(23), hex(25), '%00', 'x', 'email'];
        const good = '{"email":"eve@example.com","fullName":"E","firstName":"E","lastName":"E","designation":"E"}';
        const sent = [good, '{}', '{', '[]', '{"email":7,"fullName":"","firstName":7,"lastName":7,"designation":7}'];
        const called = ids.flatMap((id) =>
          sent.map((raw) => {
            const headers = { 'content-type': raw === '[]' ? 'text/plain' : 'application/json' };
            const options = method === 'GET' ? {} : { raw, headers };
            return member.call(method, `/${address.replace(':id', id)}`, options);
          }),
        );
        const message = 'Only an administrator or the user in question may do this';
        const error = { status: 403, body: { message, error: { code: 'FORBIDDEN', message } } };
        expect((await Promise.all(called)).map(neutral)).toEqual(called.map(() => error));
        expect(wholeStore(app)).toEqual(before);
      },
    );
  });

  describe('A2: what a caller may not set is never set', () => {
    const evil = {
      isDeleted: true,
      deletedBy: hex(24),
      orgId: hex(24),
      _id: hex(24),
      id: hex(24),
      slug: 'evil',
      role: 'admin',
      groups: ['admin'],
      groupIds: [hex(24)],
      password: 'Evil-Horse-77',
      createdAt: '1970-01-01T00:00:00.000Z',
      updatedAt: 0,
      accountType: 'individual',
      onBoardingStatus: 'configured',
      domain: 'evil.example',
      hasLoggedIn: true,
      isAdmin: true,
      userId: hex(24),
      tokenId: hex(24),
      lastUsedAt: 0,
      parent_id: null,
    };

    it('201: POST /users', async () => {
      const good = { fullName: 'Mallory', email: 'mallory@example.com' };
      const { status, body } = await admin.post('/users', { ...evil, ...good });
      expect(status).toBe(201);
      const { orgId } = (await admin.get(`/users/${admin.userId}`)).body;
      expect(body).toMatchObject({ ...good, orgId, isDeleted: false, hasLoggedIn: false, createdAt: body.updatedAt });
      expect(body.slug).toMatch(/^user-\d+$/);
      expect(JSON.stringify(body)).not.toContain(hex(24));
      expect([body.createdAt.slice(0, 4), body.deletedBy]).toEqual(['2026', undefined]);
      const rows = wholeStore(app);
      const groups = rows.group_members.filter(({ user_id }: Json) => user_id === body._id);
      const everyone = rows.user_groups.find(({ type }: Json) => type === 'everyone');
      expect(groups).toEqual([{ group_id: everyone.id, user_id: body._id }]);
      expect(rows.password_credentials.map(({ user_id }: Json) => user_id)).not.toContain(body._id);
      expect((await app.signInTokens('mallory@example.com', evil.password)).status).toBe(401);
    });

    it('200: POST /org', async () => {
      const empty = await TestApp.start();
      const { status, body } = await empty.anonymous.post('/org', { ...evil, ...organization });
      expect(status).toBe(200);
      expect(body).toMatchObject({ isDeleted: false, slug: 'org-1001', onBoardingStatus: 'notConfigured' });
      expect([body.domain, body.accountType]).toEqual(['example.com', 'business']);
      expect(JSON.stringify(body)).not.toContain(hex(24));
      await empty.close();
    });

    /** Returns the differences between two rows. */
    const changed = (before: Json, after: Json) => Object.keys(after).filter((key) => after[key] !== before[key]);
    const rowOf = (table: string, id: string) => wholeStore(app)[table].find((row: Json) => row.id === id);
    // What an administrator sets in a session is verified by that (ADDRESS-1).
    const emailColumns = ['email', 'email_verified_at', 'updated_at'];

    it.each([
      ['PUT', '', { email: 'second@example.com', hasLoggedIn: false }, emailColumns],
      ['PATCH', '/email', { email: 'third@example.com' }, emailColumns],
      ['PATCH', '/fullname', { fullName: 'Third' }, ['full_name', 'name_key', 'updated_at']],
      ['PATCH', '/firstName', { firstName: 'T' }, ['first_name', 'updated_at']],
      ['PATCH', '/lastName', { lastName: 'T' }, ['last_name', 'updated_at']],
      ['PATCH', '/designation', { designation: 'T' }, ['designation', 'updated_at']],
    ])('200: %s /users/:id%s changes what it is for, and nothing else (USER-26)', async (...given) => {
      const [method, field, good, columns] = given;
      const { body: made } = await admin.post('/users', { fullName: 'Second', email: `second-${field.slice(1)}@x.io` });
      const before = [rowOf('users', made._id), wholeStore(app)];
      app.clock.advance(1_000);
      const { status } = await admin.call(method, `/users/${made._id}${field}`, { body: { ...evil, ...good } });
      expect(status).toBe(200);
      expect(changed(before[0], rowOf('users', made._id)).sort()).toEqual(columns);
      const [was, is] = [before[1], wholeStore(app)].map(({ group_members, password_credentials, user_groups }) => {
        return { group_members, password_credentials, user_groups };
      });
      expect(is).toEqual(was);
    });

    it('200: PATCH and PUT /org, PUT /org/onboarding-status (ORG-24)', async () => {
      const [{ id }] = wholeStore(app).organizations;
      for (const [method, path, good, columns] of [
        ['PATCH', '/org', { shortName: 'P' }, ['short_name', 'updated_at']],
        ['PUT', '/org', { shortName: 'Q' }, ['short_name', 'updated_at']],
        ['PUT', '/org/onboarding-status', { status: 'skipped' }, ['onboarding_status', 'updated_at']],
      ] as const) {
        const before = rowOf('organizations', id);
        app.clock.advance(1_000);
        const { status } = await admin.call(method, path, { body: { ...evil, ...good } });
        expect([path, status, changed(before, rowOf('organizations', id)).sort()]).toEqual([path, 200, columns]);
      }
    });

    it('400: POST /personal-access-tokens takes none of it, and makes nothing (CRED-2)', async () => {
      const before = wholeStore(app);
      for (const [key, value] of Object.entries(evil)) {
        const { status, body } = await member.post('/personal-access-tokens', { name: 'x', [key]: value });
        expect([key, status, body.error.details[0].field]).toEqual([key, 400, `body.${key}`]);
      }
      expect((await member.post('/personal-access-tokens', { ...evil, name: 'x' })).status).toBe(400);
      expect(wholeStore(app)).toEqual(before);
    });

    it('201: POST /personal-access-tokens belongs to the caller', async () => {
      const { status, body } = await member.post('/personal-access-tokens', { name: 'x' });
      expect([status, body.token.id === hex(24)]).toEqual([201, false]);
      const [row] = wholeStore(app).personal_access_tokens.filter(({ id }: Json) => id === body.token.id);
      expect(row).toMatchObject({ user_id: member.userId, last_used_at: null, parent_id: null, revoked_at: null });
      const self = await app.with(body.token.accessToken).get('/personal-access-tokens/admin');
      expect([self.status, self.body.error.code]).toEqual([400, 'ADMIN_REQUIRED']);
    });
  });

  describe('A3: ids', () => {
    it.each([
      ['23 digits', hex(23)],
      ['25 digits', hex(25)],
      ['600 digits', hex(600)],
      ['NUL', '%00'],
      ['digits and NUL', `${hex(24)}%00`],
      ['a line break', `${hex(24)}%0a`],
      ['a letter beyond f', `${hex(23)}g`],
      ['full-width digits', encodeURIComponent('１'.repeat(24))],
      ['a path up', '..%2f..%2fetc%2fpasswd'],
      ['SQL', encodeURIComponent("' OR 1=1 --")],
      ['spaces', `%20${hex(24)}`],
    ])('400: %s (HTTP-19)', async (_, id) => {
      const responses = [
        await admin.get(`/users/${id}`),
        await admin.delete(`/personal-access-tokens/${id}`),
        await admin.delete(`/personal-access-tokens/admin/${id}`),
        await admin.put(`/users/${id}`, { email: 'x@example.com' }),
        await admin.patch(`/users/${id}/fullname`, { fullName: 'X' }),
        await admin.patch(`/users/${id}/email`, { email: 'x@example.com' }),
        await admin.delete(`/users/${id}`),
        await admin.post(`/users/${id}/restore`),
        await admin.get(`/users/${id}/adminCheck`),
        await admin.post('/users/by-ids', { userIds: [admin.userId, decodeURIComponent(id)] }),
        await admin.get(`/users?groupIds=${id}`),
        await app.service().get(`/users/internal/${id}`),
      ];
      expect(responses.map(({ status, body }) => [status, body.error.code])).toEqual(
        responses.map(() => [400, 'VALIDATION_ERROR']),
      );
      const unknown = [
        await app.anonymous.get(`/users/${id}`),
        await app.anonymous.delete(`/personal-access-tokens/${id}`),
      ];
      expect(unknown.map(({ status }) => status)).toEqual([401, 401]);
    });

    it('404: of a deleted user, of another kind and of nothing are the same (ERR-18)', async () => {
      const leaving = await app.member(admin, 'gone@example.com');
      const goneToken = await leaving.token();
      await app.deleteUser(leaving.userId);
      const rows = wholeStore(app);
      const others = [goneToken.tokenId, rows.user_groups[0].id, rows.sessions[0].id, rows.organizations[0].id];
      const users = await Promise.all(
        [leaving.userId, gone.userId, hex(24), ...others].map((id) => member.get(`/users/${id}`)),
      );
      expect(new Set(users.map((response) => JSON.stringify(neutral(response)))).size).toBe(1);
      const { tokenId } = await admin.token();
      const ids = [tokenId, member.userId, hex(24), ...others];
      const tokens = await Promise.all(ids.map((id) => member.delete(`/personal-access-tokens/${id}`)));
      expect(new Set(tokens.map((response) => JSON.stringify(neutral(response)))).size).toBe(1);
      expect([users[0]?.status, tokens[0]?.status]).toEqual([404, 404]);
    });
  });
});
