import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requestText, sendRaw } from '../support/raw-http.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const anId = 'a'.repeat(24);
const json = { 'content-type': 'application/json' };

describe('order of checks and bodies', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  const faulty = [
    ['malformed JSON', { raw: '{"fullName":', headers: json }],
    ['a wrong content type', { raw: 'fullName=x', headers: { 'content-type': 'application/x-www-form-urlencoded' } }],
    ['invalid input', { raw: '{"fullName":1}', headers: json }],
    ['a forbidden name', { raw: '{"__proto__":1}', headers: json }],
  ] as const;

  describe.each(faulty)('%s (HTTP-2, HTTP-6)', (name, options) => {
    it('401 without a credential, and with a bad one', async () => {
      expect((await app.anonymous.call('POST', '/users', options)).status).toBe(401);
      expect((await app.with('not-a-token').call('POST', '/users', options)).status).toBe(401);
    });

    it('403 for the wrong person, in the same words as for good input', async () => {
      const refused = await member.call('POST', '/users', options);
      const good = await member.post('/users', { fullName: 'X', email: 'x@example.com' });
      expect([refused.status, refused.body.message]).toEqual([403, good.body.message]);
      expect(refused.body.error.code).toBe('ADMIN_REQUIRED');
    });

    it('403 without the scope', async () => {
      const reader = await admin.token({ scopes: ['user:read'] });
      const { status, body } = await reader.call('POST', '/users', options);
      expect([status, body.error.code]).toEqual([403, 'INSUFFICIENT_SCOPE']);
    });

    it('400 or 415 for whom it concerns', async () => {
      const { status } = await admin.call('POST', '/users', options);
      expect(status).toBe(name === 'a wrong content type' ? 415 : 400);
    });
  });

  describe('the route (HTTP-5)', () => {
    it.each([
      ['GET /users', [401, 200]],
      ['DELETE /users', [405, 405]],
      ['DELETE /personal-access-tokens', [405, 405]],
      ['DELETE /personal-access-tokens/admin', [405, 405]],
      ['GET /org', [401, 200]],
    ])('%s is the same with a slash at the end, and nothing with two (FIT-40)', async (call, expected) => {
      const [method = '', path = ''] = call.split(' ');
      const statuses = async (address: string) => [
        (await app.anonymous.call(method, address)).status,
        (await admin.call(method, address)).status,
      ];
      expect([await statuses(path), await statuses(`${path}/`)]).toEqual([expected, expected]);
      expect(await statuses(`${path}//`)).toEqual([404, 404]);
    });

    it.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])(
      '404: %s on an unknown route without a credential',
      async (method) => {
        const { status, body } = await app.anonymous.call(method, '/nowhere');
        expect([status, body.error.code]).toEqual([404, 'NOT_FOUND']);
      },
    );

    it.each([
      ['malformed JSON', '{', 'application/json'],
      ['a wrong content type', 'x', 'text/plain'],
      ['a malformed content type', 'x', 'x'],
    ])('404: an unknown route with %s', async (_, raw, type) => {
      const response = await app.anonymous.call('POST', '/nowhere', { raw, headers: { 'content-type': type } });
      expect(response.status).toBe(404);
    });

    it.each(['/.well-known/anything', '/.well-known/openid-configuration', '/api', '/api/v1', '/favicon.ico'])(
      '404 as JSON: %s',
      async (path) => {
        const { status, headers, body } = await app.anonymous.get(`/${path}`);
        expect(status).toBe(404);
        expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
        expect(body.error.code).toBe('NOT_FOUND');
      },
    );

    it.each([
      ['DELETE', '/users', 'GET, HEAD, POST'],
      ['PATCH', '/users', 'GET, HEAD, POST'],
      ['POST', `/users/${anId}`, 'GET, HEAD, PUT, DELETE'],
      ['POST', `/users/${anId}/email`, 'GET, HEAD, PATCH'],
      ['GET', `/users/${anId}/fullname`, 'PATCH'],
      ['GET', `/users/${anId}/restore`, 'POST'],
      ['PATCH', '/users/dp', 'GET, HEAD, PUT, DELETE'],
      ['GET', '/users/by-ids', 'POST'],
      ['DELETE', '/users/by-ids', 'POST'],
      ['PATCH', '/users/email/exists', 'GET, HEAD'],
      ['DELETE', `/users/internal/${anId}`, 'GET, HEAD'],
      ['PUT', '/users/fetch/with-groups', 'GET, HEAD'],
      ['PUT', '/users/health', 'GET, HEAD'],
      ['OPTIONS', '/org', 'GET, HEAD, POST, PUT, PATCH, DELETE'],
      ['POST', '/org/logo', 'GET, HEAD, PUT, DELETE'],
      ['POST', '/org/onboarding-status', 'GET, HEAD, PUT'],
      ['GET', `/personal-access-tokens/${anId}`, 'DELETE'],
      ['POST', '/org/exists', 'GET, HEAD'],
      ['GET', '/userAccount/authenticate', 'POST'],
      ['POST', '//health/live', 'GET, HEAD'],
    ])('405 with Allow: %s %s, without a credential (ERR-19)', async (method, path, allow) => {
      const options = method === 'GET' ? {} : { raw: '{', headers: json };
      const { status, headers, body } = await app.anonymous.call(method, path, options);
      expect([status, body.error.code]).toEqual([405, 'METHOD_NOT_ALLOWED']);
      expect(headers.get('allow')?.split(', ').sort()).toEqual(allow.split(', ').sort());
    });
  });

  describe('an empty body is no body (HTTP-17)', () => {
    const revoke = `DELETE /api/v1/personal-access-tokens/${anId} HTTP/1.1`;
    const types = [
      'application/json',
      'text/plain',
      'multipart/form-data',
      'garbage',
      '',
      'application/json; charset=latin1',
    ];
    const forms = [
      ['no length', [], ''],
      ['length 0', ['Content-Length: 0'], ''],
    ] as const;

    it.each(types.flatMap((type) => forms.map(([form, ...rest]) => [type, form, rest] as const)))(
      'DELETE with the content type %j and %s',
      async (type, _, [headers, body]) => {
        const credential = `Authorization: Bearer ${admin.credential}`;
        const sent = requestText(revoke, ['Host: x', credential, `Content-Type: ${type}`, ...headers], body);
        const { answers: responses } = await sendRaw(app, sent);
        expect(responses.map(({ status }) => status)).toEqual([404]);
      },
    );

    it.each(['application/json', 'text/plain'])('DELETE with %s and no chunk', async (type) => {
      const headers = ['Host: x', `Authorization: Bearer ${admin.credential}`, `Content-Type: ${type}`];
      const sent = requestText(revoke, [...headers, 'Transfer-Encoding: chunked'], '0\r\n\r\n');
      expect((await sendRaw(app, sent)).answers.map(({ status }) => status)).toEqual([404]);
    });

    it('200: DELETE with content-type: application/json and nothing else', async () => {
      const { tokenId } = await member.token();
      const { status } = await member.call('DELETE', `/personal-access-tokens/${tokenId}`, { headers: json });
      expect(status).toBe(200);
    });

    it('400, not 415: POST /users without a body has every field missing', async () => {
      const { status, body } = await admin.call('POST', '/users', { headers: { 'content-type': 'text/plain' } });
      expect([status, body.error.code]).toEqual([400, 'VALIDATION_ERROR']);
    });
  });

  describe('reason (HTTP-18, PAT-15)', () => {
    const reasonOf = async (tokenId: string) => {
      const { body } = await admin.get('/personal-access-tokens/admin?status=revoked');
      return body.data.find(({ id }: { id: string }) => id === tokenId)?.revokeReason;
    };

    it.each([
      ['in the query', '?reason=lost%20it', undefined, 'lost it'],
      ['in the body', '', { reason: 'stolen' }, 'stolen'],
      ['in both, of which the body counts', '?reason=query', { reason: 'body' }, 'body'],
      ['in neither', '', undefined, 'Revoked by owner'],
    ])('200: %s', async (...[, query, body, stored]) => {
      const { tokenId } = await member.token();
      expect((await member.delete(`/personal-access-tokens/${tokenId}${query}`, body)).status).toBe(200);
      expect(await reasonOf(tokenId)).toBe(stored);
    });

    it.each([
      [`?reason=${'x'.repeat(501)}`, 'query.reason'],
      ['?reason=a&reason=b', 'query.reason'],
    ])('400: %s', async (query, field) => {
      const { tokenId } = await member.token();
      const { status, body } = await member.delete(`/personal-access-tokens/${tokenId}${query}`);
      expect([status, body.error.details[0].field]).toEqual([400, field]);
    });
  });

  it('ids are taken in upper case and answered in lower case (HTTP-20)', async () => {
    const { status, body } = await member.get(`/users/${admin.userId.toUpperCase()}`);
    expect([status, body._id, body.id]).toEqual([200, admin.userId, admin.userId]);
    const { tokenId } = await member.token();
    expect((await member.delete(`/personal-access-tokens/${tokenId.toUpperCase()}`)).status).toBe(200);
  });
});
