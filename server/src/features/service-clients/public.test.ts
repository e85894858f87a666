import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storedRows } from '../../../test/support/second-connection.ts';
import { issuedTo, type RegisteredService, registerService } from '../../../test/support/service-clients.ts';
import { type Client, TestApp } from '../../../test/support/test-app.ts';
import { hashCredential } from '../../base/secret.ts';
import { findServiceToken, listClients, pruneServiceTokens, readClientInput } from './public.ts';

const hourMs = 3_600_000;

let app: TestApp;
let admin: Client;
let service: RegisteredService;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
  service = await registerService(admin, ['USER_LOOKUP']);
});
afterAll(() => app.close());

describe('readClientWish', () => {
  it('reads what a service may be, as the route does (SERVICE-8, SERVICE-13)', () => {
    const input = { name: ' connector ', scopes: ['user:lookup', 'USER_LOOKUP'] };
    expect(readClientInput(input)).toEqual({ name: 'connector', scopes: ['USER_LOOKUP'] });
  });

  it.each([
    { name: 'x', scopes: [] },
    { name: '', scopes: ['USER_LOOKUP'] },
    { name: 'x', scopes: ['ADMIN'] },
    { name: undefined, scopes: undefined },
  ])('null for %j (SERVICE-8)', (input) => expect(readClientInput(input)).toBeNull());
});

describe('findServiceToken', () => {
  it('knows a token by its hash alone (SERVICE-12)', async () => {
    const { credential } = await issuedTo(app, service);
    const expiresAtMs = Math.floor(app.clock.now() / 1_000) * 1_000 + hourMs;
    expect(await findServiceToken(app.services, hashCredential(credential))).toEqual({
      clientId: service.clientId,
      scopes: new Set(['USER_LOOKUP']),
      isRevoked: false,
      expiresAtMs,
    });
    expect(await findServiceToken(app.services, hashCredential(`${credential} `))).toBeNull();
  });
});

describe('listClients', () => {
  it('tells nothing that proves a service (SERVICE-9)', async () => {
    const [record] = await listClients(app.services.db.read, app.clock.now());
    const told = ['clientId', 'createdAt', 'createdBy', 'creatorIsAdministrator', 'earlierSecretUntil', 'lastUsedAt'];
    expect(Object.keys(record ?? {}).sort()).toEqual([...told, 'name', 'scopes']);
  });
});

describe('pruneServiceTokens', () => {
  it('forgets tokens a day after they ended, and none before (SERVICE-12)', async () => {
    const own = await TestApp.start();
    const owner = await own.setUp();
    const known = await registerService(owner);
    const old = await issuedTo(own, known);
    own.clock.advance(1_000);
    const newer = await issuedTo(own, known);
    const hashes = () =>
      storedRows(own)
        ['service_tokens']?.map(({ hash }) => hash)
        .sort();
    const both = [old, newer].map(({ credential }) => hashCredential(credential)).sort();
    const route = `/users/internal/${owner.userId}`;
    const endMs = Math.floor(own.clock.now() / 1_000) * 1_000 - 1_000 + hourMs;

    own.clock.set(endMs + 24 * hourMs);
    expect(await pruneServiceTokens(own.services)).toBe(0);
    expect(hashes()).toEqual(both);
    expect((await old.get(route)).body.error.code).toBe('TOKEN_EXPIRED');

    own.clock.advance(1);
    expect(await pruneServiceTokens(own.services)).toBe(1);
    expect(hashes()).toEqual([hashCredential(newer.credential)]);
    expect((await old.get(route)).body.error.code).toBe('TOKEN_INVALID');
    await own.close();
  });
});
