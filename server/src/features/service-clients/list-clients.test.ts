import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { askToken, issuedTo, registerService } from '../../../test/support/service-clients.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';
import { toTimestamp } from '../../base/clock.ts';

const path = '/service-clients';

let app: TestApp;
let admin: Client;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
});
afterAll(() => app.close());

describe('GET /service-clients', () => {
  it('200: every service in order of creation, without its secret (SERVICE-9)', async () => {
    expect((await admin.get(path)).body).toEqual({ clients: [] });
    const first = await registerService(admin, ['USER_LOOKUP'], 'zeta');
    app.clock.advance(1_500);
    const second = await registerService(admin, ['user:lookup', 'FETCH_CONFIG'], 'alpha');
    const { status, body, headers } = await admin.get(path);
    expect(status).toBe(200);
    const nowMs = app.clock.now();
    const making = { createdBy: admin.userId, creatorIsAdministrator: true, earlierSecretUntil: null };
    const common = { lastUsedAt: null, ...making };
    expect(body).toEqual({
      clients: [
        {
          ...common,
          clientId: first.clientId,
          name: 'zeta',
          scopes: ['USER_LOOKUP'],
          createdAt: toTimestamp(nowMs - 1_500),
        },
        {
          ...common,
          clientId: second.clientId,
          name: 'alpha',
          scopes: ['USER_LOOKUP', 'FETCH_CONFIG'],
          createdAt: toTimestamp(nowMs),
        },
      ],
    });
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it('200: lastUsedAt is when a service last got a token, and no refused try counts (SERVICE-9)', async () => {
    const service = await registerService(admin, ['USER_LOOKUP'], 'used');
    const usedAt = async () =>
      (await admin.get(path)).body.clients.find(({ clientId }: Json) => clientId === service.clientId).lastUsedAt;
    await askToken(app, { ...service, clientSecret: 'wrong' });
    await askToken(app, service, { scope: 'FETCH_CONFIG' });
    expect(await usedAt()).toBeNull();
    app.clock.advance(1_000);
    const holder = await issuedTo(app, service);
    const issuedAt = toTimestamp(app.clock.now());
    expect(await usedAt()).toBe(issuedAt);
    app.clock.advance(1_000);
    expect((await holder.get(`/users/internal/${admin.userId}`)).status).toBe(200);
    expect(await usedAt()).toBe(issuedAt);
  });

  it('200: by a token with org:admin, and a body on the GET changes nothing (SERVICE-9)', async () => {
    const token = await admin.token({ scopes: ['org:admin'] });
    expect((await token.get(path)).body).toEqual((await admin.get(path)).body);
  });

  it.each(['page=2', 'limit=1', 'clientSecret=1'])(
    '400: there is nothing to ask for, such as %s (CRED-3)',
    async (query) => {
      expect((await admin.get(`${path}?${query}`)).status).toBe(400);
    },
  );

  it('401 and 403: no one, a member, a token without org:admin, a service (SERVICE-9)', async () => {
    const member = await app.member(admin, 'grace@example.com');
    const holder = await issuedTo(app, await registerService(admin));
    const narrow = await admin.token({ scopes: ['org:read', 'org:write'] });
    const membersToken = await member.token({ scopes: ['org:admin'] });
    const callers = [app.anonymous, holder, app.service(['FETCH_CONFIG']), member, membersToken, narrow];
    const statuses = await Promise.all(callers.map(async (caller) => (await caller.get(path)).status));
    expect(statuses).toEqual([401, 401, 401, 403, 403, 403]);
  });
});
