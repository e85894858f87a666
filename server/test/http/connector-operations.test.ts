import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FakeBackend, responding } from '../support/fake-backend.ts';
import { sendBegun } from '../support/raw-http.ts';
import { type Client, type Json, TestApp } from '../support/test-app.ts';

const anId = 'a'.repeat(24);
const lists = ['/users/graph/list', '/users/teams/list', '/teams/user/teams'];

/** Every operation but the lists. */
const operations: readonly { method: string; path: string; body?: Json }[] = [
  { method: 'POST', path: '/teams', body: { name: 'Research' } },
  { method: 'GET', path: `/teams/${anId}` },
  { method: 'PUT', path: `/teams/${anId}`, body: { name: 'Research' } },
  { method: 'DELETE', path: `/teams/${anId}` },
  { method: 'GET', path: `/teams/${anId}/users` },
];

describe('every operation of the team directory, behind a connector backend', () => {
  let backend: FakeBackend;
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    backend = await FakeBackend.start();
    app = await TestApp.start({ CONNECTOR_BACKEND_URL: backend.url });
    admin = await app.setUp();
  });
  beforeEach(() => {
    backend.requests.length = 0;
    backend.behave = responding(200);
  });
  afterAll(async () => {
    await app.close();
    await backend.stop();
  });

  const sentBodies = () => backend.requests.map(({ body }) => JSON.parse(Buffer.from(body, 'latin1').toString()));

  it.each(operations)(
    '$method $path: 2xx as it is, refusals as ours, the rest 502 (TEAM-12)',
    async ({ method, path, body }) => {
      const statusFor = async (status: number) => {
        backend.behave = responding(status, '{"a":1}');
        return (await admin.call(method, path, { body })).status;
      };
      for (const status of [200, 201, 202, 400, 403, 404, 409]) expect(await statusFor(status)).toBe(status);
      for (const status of [301, 401, 405, 410, 422, 429, 500, 503]) expect(await statusFor(status)).toBe(502);
    },
  );

  it.each(lists)('200: GET %s is what the backend says, in whatever form (TEAM-1, TEAM-2)', async (path) => {
    const text = '{"teams":[{"_key":"x","currentUserPermission":null}],\n "more":1.50}';
    backend.behave = responding(200, text);
    expect((await admin.get(path)).text).toBe(text);
  });

  it('the built-in directory is not asked, and nothing is written down (TEAM-13)', async () => {
    const audit = await app.audit();
    for (const { method, path, body } of operations)
      expect((await admin.call(method, path, { body })).status).toBe(200);
    expect(await app.audit()).toEqual(audit);
    expect(await app.services.db.read.selectFrom('teams').selectAll().execute()).toEqual([]);
  });

  it('400, 413 or 415: a body that is not right for us never gets there (TEAM-29)', async () => {
    const member = { userId: anId, role: 'READER' };
    const named = (count: number) =>
      Array.from({ length: count }, (_, place) => ({ ...member, userId: String(place).padStart(24, '0') }));
    const bodies: Json[] = [
      { name: '' },
      { name: 7 },
      { name: 'a\nb' },
      { name: 'x'.repeat(256) },
      { name: 'x', description: 'x'.repeat(256) },
      { name: 'x', members: [member, member] },
      { name: 'x', members: [{ ...member, role: 'ADMIN' }] },
      { name: 'x', members: named(1_001) },
    ];
    for (const body of bodies) {
      expect((await admin.post('/teams', body)).status).toBe(400);
      expect((await admin.put(`/teams/${anId}`, body)).status).toBe(400);
    }
    expect((await admin.post('/teams', {})).status).toBe(400);
    expect((await admin.post('/teams', { name: 'x', more: 'x'.repeat(1_048_576) })).status).toBe(413);
    const raw = '{"name":"x","__proto__":{}}';
    expect((await admin.post('/teams', undefined, { raw, headers: { 'content-type': 'text/plain' } })).status).toBe(
      415,
    );
    const headers = { 'content-type': 'application/json' };
    expect((await admin.post('/teams', undefined, { raw, headers })).status).toBe(400);
    expect(backend.requests).toEqual([]);
  });

  it('a body goes on with whatever further fields it has (TEAM-29)', async () => {
    const more = { userRoles: [{ userId: 'x', role: 'Z' }], nested: { deep: [1, null, true] } };
    await admin.post('/teams', { name: ' Caf\u0065\u0301 ', ...more });
    await admin.put(`/teams/${anId}`, { description: '', ...more });
    expect(sentBodies()).toEqual([
      { name: 'Caf\u00e9', ...more },
      { description: null, ...more },
    ]);
  });

  it.each(operations.filter(({ method }) => method !== 'GET'))(
    '401: $method $path of a token that is revoked while the body arrives is never heard there (AUTH-27, PAT-16)',
    async ({ method, path, body = {} }) => {
      const token = await admin.token();
      const text = JSON.stringify(body);
      const lines = ['Host: x', `Authorization: Bearer ${token.credential}`, 'Content-Type: application/json'];
      const head = [`${method} /api/v1${path} HTTP/1.1`, ...lines, `Content-Length: ${text.length}`, '', ''];
      const connection = await sendBegun(app, head.join('\r\n') + text.slice(0, -1));
      expect((await admin.delete(`/personal-access-tokens/${token.tokenId}`)).status).toBe(200);
      connection.send(text.slice(-1));
      const { answers: responses } = await connection.until((seen) => seen.answers.length > 0);
      connection.destroy();
      expect([responses[0]?.status, responses[0]?.body.error.code]).toEqual([401, 'TOKEN_REVOKED']);
      expect(backend.requests).toEqual([]);
    },
  );

  it('401 and 403: anyone who may not, is never heard there (SCOPE-1)', async () => {
    const narrow = await admin.token({ scopes: ['org:read'] });
    const all = [...lists.map((path) => ({ method: 'GET', path, body: undefined })), ...operations];
    for (const { method, path, body } of all) {
      expect((await app.anonymous.call(method, path, { body })).status).toBe(401);
      expect((await narrow.call(method, path, { body })).status).toBe(403);
    }
    expect(backend.requests).toEqual([]);
  });
});
