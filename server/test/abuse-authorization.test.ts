import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addressOf } from '../src/http/endpoint.ts';
import { routes } from '../src/routes.gen.ts';
import { secondConnection } from './second-connection.ts';
import { neutral } from './sign-in.ts';
import { type Client, type Json, organization, TestApp } from './test-app.ts';

/** Every row of every table. */
function wholeStore(app: TestApp): Json {
  const store = secondConnection(app);
  const tables = store.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all() as string[];
  const rows = Object.fromEntries(tables.map((table) => [table, store.prepare(`SELECT * FROM "${table}"`).all()]));
  store.close();
  return rows;
}

const hex = (digits: number) => 'a'.repeat(digits);

describe('abuse of authorization', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  describe('A1: a member on every administrator route learns and changes nothing (HTTP-4)', () => {
    const administrators = routes.filter(({ policy }) => policy.who === 'admin');
    const targets = administrators.map((route) => [route.method, addressOf(route), route.policy] as const);

    it.each(targets)('%s %s', async (method, address, policy) => {
      const { tokenId } = await admin.token();
      const before = wholeStore(app);
      const ids = [tokenId, admin.userId, member.userId, hex(24), hex(23), '%00', 'not-an-id'];
      const bodies = [undefined, '{}', '{', '{"fullName":"Eve","email":"eve@example.com"}', '{"reason":7}', '[]', '"'];
      const queries = ['', '?page=0', '?limit=-1', '?__proto__=1', '?status=none', `?userId=${hex(3)}`];
      const tries = Array.from({ length: 14 }, (_, place) => {
        const id = ids[place % ids.length] ?? '';
        const raw = method === 'GET' ? undefined : bodies[place % bodies.length];
        const headers = { 'content-type': place % 3 === 0 ? 'text/plain' : 'application/json' };
        const path = address.replace(/:\w+/, id) + (queries[place % queries.length] ?? '');
        return { path, options: raw === undefined ? {} : { raw, headers } };
      });
      const called = tries.map(({ path, options }) => member.call(method, `/${path}`, options));
      const answers = (await Promise.all(called)).map(neutral);
      const status = 'adminFirst' in policy && policy.adminFirst ? 400 : 403;
      const message = 'Admin access required';
      const refusal = { status, body: { message, error: { code: 'ADMIN_REQUIRED', message } } };
      expect(answers).toEqual(answers.map(() => refusal));
      expect(wholeStore(app)).toEqual(before);
    });

    it('there are such routes', () => {
      expect(targets.length).toBeGreaterThanOrEqual(3);
    });
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
      const { status, body } = await empty.nobody.post('/org', { ...evil, ...organization });
      expect(status).toBe(200);
      expect(body).toMatchObject({ isDeleted: false, slug: 'org-1001', onBoardingStatus: 'notConfigured' });
      expect([body.domain, body.accountType]).toEqual(['example.com', 'business']);
      expect(JSON.stringify(body)).not.toContain(hex(24));
      await empty.close();
    });

    it('201: POST /personal-access-tokens belongs to the caller', async () => {
      const { status, body } = await member.post('/personal-access-tokens', { ...evil, name: 'x' });
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
      const answers = [
        await admin.get(`/users/${id}`),
        await admin.delete(`/personal-access-tokens/${id}`),
        await admin.delete(`/personal-access-tokens/admin/${id}`),
      ];
      expect(answers.map(({ status, body }) => [status, body.error.code])).toEqual(
        answers.map(() => [400, 'VALIDATION_ERROR']),
      );
      const unknown = [await app.nobody.get(`/users/${id}`), await app.nobody.delete(`/personal-access-tokens/${id}`)];
      expect(unknown.map(({ status }) => status)).toEqual([401, 401]);
    });

    it('404: of a deleted user, of another kind and of nothing are the same (ERR-18)', async () => {
      const gone = await app.member(admin, 'gone@example.com');
      const goneToken = await gone.token();
      await app.deleteUser(gone.userId);
      const rows = wholeStore(app);
      const others = [goneToken.tokenId, rows.user_groups[0].id, rows.sessions[0].id, rows.organizations[0].id];
      const users = await Promise.all([gone.userId, hex(24), ...others].map((id) => member.get(`/users/${id}`)));
      expect(new Set(users.map((answer) => JSON.stringify(neutral(answer)))).size).toBe(1);
      const { tokenId } = await admin.token();
      const ids = [tokenId, member.userId, hex(24), ...others];
      const tokens = await Promise.all(ids.map((id) => member.delete(`/personal-access-tokens/${id}`)));
      expect(new Set(tokens.map((answer) => JSON.stringify(neutral(answer)))).size).toBe(1);
      expect([users[0]?.status, tokens[0]?.status]).toEqual([404, 404]);
    });
  });
});
