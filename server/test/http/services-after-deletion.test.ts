import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addressOf } from '../../src/http/endpoint.ts';
import { routes } from '../../src/routes.gen.ts';
import { holdNext } from '../support/gates.ts';
import { askToken, introspect, issuedTo, type RegisteredService, registerService } from '../support/service-clients.ts';
import { type Client, TestApp, type TestResponse } from '../support/test-app.ts';

const everyScope = ['USER_LOOKUP', 'FETCH_CONFIG', 'EVENTS_READ', 'TOKEN_INTROSPECT'];

describe('services once the organization is deleted (ORG-27)', () => {
  let app: TestApp;
  let admin: Client;
  /** By what they may do. */
  const services: Record<string, RegisteredService> = {};
  /** Tokens of before, by how they were made and what they are for. */
  const tokens: Record<string, Client> = {};
  let racing: Promise<TestResponse>;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    const kinds = {
      all: everyScope,
      lookUp: ['USER_LOOKUP'],
      events: ['EVENTS_READ'],
      introspecting: ['TOKEN_INTROSPECT'],
    };
    for (const [name, scopes] of Object.entries(kinds)) {
      const service = await registerService(admin, scopes);
      services[name] = service;
      tokens[`issued: ${name}`] = await issuedTo(app, service);
      tokens[`self-signed: ${name}`] = app.service(scopes);
    }
    tokens['session'] = admin;
    tokens['personal'] = await admin.token();
    const gate = holdNext(app.services.db, 'transaction');
    racing = askToken(app, service('all'));
    await gate.arrived;
    await app.services.db.transaction((tx) => tx.updateTable('organizations').set({ is_deleted: 1 }).execute());
    gate.open();
  });
  afterAll(() => app.close());

  function service(name: string): RegisteredService {
    const found = services[name];
    if (!found) throw new Error(`no service ${name}`);
    return found;
  }
  const codeOf = ({ status, body }: TestResponse) => [status, body.error?.code ?? body.error];

  it('401: a token that was proved for before and would be written after it', async () => {
    expect(codeOf(await racing)).toEqual([401, 'invalid_client']);
  });

  const ofServices = routes.filter(({ policy }) => policy.who === 'service');
  it.each(ofServices.map((endpoint) => [`${endpoint.method} ${endpoint.path}`, endpoint] as const))(
    '401: %s, with every scope',
    async (_, endpoint) => {
      const path = `/${addressOf(endpoint).replace(':id', admin.userId)}`;
      for (const client of Object.values(tokens)) {
        expect(codeOf(await client.call(endpoint.method, path))).toEqual([401, 'TOKEN_INVALID']);
      }
    },
  );

  it('200: events up to the last one, with EVENTS_READ; 401 with anything else', async () => {
    for (const [name, client] of Object.entries(tokens)) {
      const { status } = await client.get('/events');
      expect([name, status]).toEqual([name, /: (all|events)$/.test(name) ? 200 : 401]);
    }
  });

  it('200: a token for EVENTS_READ; 401 for any other scope that is asked for, and where there is no other', async () => {
    for (const scope of [undefined, 'EVENTS_READ']) {
      const { status, body } = await askToken(app, service('all'), scope ? { scope } : {});
      expect([status, body.scope]).toEqual([200, 'EVENTS_READ']);
      expect((await app.with(body.access_token).get('/events')).status).toBe(200);
    }
    for (const scope of ['USER_LOOKUP', 'EVENTS_READ USER_LOOKUP', 'UNKNOWN']) {
      expect(codeOf(await askToken(app, service('all'), { scope }))).toEqual([401, 'invalid_client']);
    }
    for (const name of ['lookUp', 'introspecting']) {
      expect(codeOf(await askToken(app, service(name)))).toEqual([401, 'invalid_client']);
    }
  });

  it('introspection answers active for EVENTS_READ, that scope alone, and active: false for everything else', async () => {
    for (const [name, { credential }] of Object.entries(tokens)) {
      const { status, body } = await introspect(app, service('introspecting'), credential ?? '');
      const shown = /: (all|events)$/.test(name)
        ? { active: true, scope: 'EVENTS_READ' }
        : { active: false, scope: undefined };
      expect([name, status, { active: body.active, scope: body.scope }]).toEqual([name, 200, shown]);
      expect(body.active || Object.keys(body).length === 1).toBe(true);
    }
  });
});
