import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addressOf } from '../src/http/app.ts';
import { routes } from '../src/routes.gen.ts';
import { type Client, password, TestApp } from './test-app.ts';

const batch = 50;
const batches = 40;

const names = ['name', 'scopes', 'expiryDays', 'fullName', 'email', 'mobile', 'designation', 'reason', 'all', 'method'];
const moreNames = [
  'credentials',
  'password',
  'accountType',
  'contactEmail',
  'registeredName',
  'adminFullName',
  'address',
];
const hints = [
  'x',
  'a@example.com',
  'ada@example.com',
  'user:read',
  'never',
  'business',
  'password',
  '+4930123456',
  '',
];
const nearlyRight = fc.oneof(fc.constantFrom<unknown>(...hints, 30, true, null, ['user:read']), fc.jsonValue());
/** Documents with the names that the service knows, so that they get further than others do. */
const documents = fc.dictionary(fc.constantFrom(...names, ...moreNames), nearlyRight, { maxKeys: 8 });
const json = fc.oneof(fc.jsonValue(), documents).map((value) => Uint8Array.from(Buffer.from(JSON.stringify(value))));
const noise = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  fc.string({ unit: 'binary' }).map((text) => Uint8Array.from(Buffer.from(text))),
  fc.tuple(json, fc.uint8Array({ maxLength: 3 }), fc.nat()).map(([document, extra, place]) => {
    const at = place % (document.length + 1);
    return Uint8Array.from([...document.subarray(0, at), ...extra, ...document.subarray(at)]);
  }),
);
const bodies = fc.array(fc.oneof(json, noise), { minLength: batch, maxLength: batch });

const taking = routes
  .filter(({ method }) => method !== 'GET')
  .map((route) => [route.method, addressOf(route).replace(/:\w+/, 'f'.repeat(24))] as const);

describe('2,000 random bodies on every route that takes one are never a fault of ours', () => {
  let app: TestApp;
  let admin: Client;
  let empty: TestApp;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    empty = await TestApp.start();
  });
  afterAll(async () => {
    await app.close();
    await empty.close();
  });

  async function send(client: Client, [method, path]: readonly [string, string], raw: Uint8Array<ArrayBuffer>) {
    const begun = path.endsWith('/authenticate') ? { 'x-session-token': 'x' } : {};
    const headers = { 'content-type': 'application/json', ...begun };
    return (await client.call(method, `/${path}`, { raw, headers })).status;
  }

  /** A logout among the bodies may end the session: it goes on as if there had been none. */
  async function keepSignedIn(): Promise<void> {
    await app.services.db.transaction((tx) => tx.updateTable('sessions').set({ ended_at: null }).execute());
  }

  it.each(taking)('%s %s', async (...route) => {
    const seen = new Set<number>();
    const sendAll = async (many: readonly Uint8Array<ArrayBuffer>[]) => {
      await keepSignedIn();
      const statuses = await Promise.all(many.map((raw) => send(admin, route, raw)));
      for (const status of statuses) seen.add(status);
      expect(statuses.filter((status) => status >= 500)).toEqual([]);
    };
    await fc.assert(fc.asyncProperty(bodies, sendAll), { numRuns: batches, endOnFailure: true });
    await keepSignedIn();
    expect(seen.size).toBeGreaterThan(0);
    expect((await admin.get('/users')).status).toBe(200);
  });

  it('POST /org while there is no organization', async () => {
    const sendAll = async (many: readonly Uint8Array<ArrayBuffer>[]) => {
      const statuses = await Promise.all(many.map((raw) => send(empty.nobody, ['POST', '/api/v1/org'], raw)));
      expect(statuses.filter((status) => status !== 400 && status !== 415)).toEqual([]);
    };
    await fc.assert(fc.asyncProperty(bodies, sendAll), { numRuns: batches, endOnFailure: true });
    expect((await empty.nobody.get('/org/exists')).body).toEqual({ exists: false });
  });

  it('nothing was logged as a fault, and everybody can still sign in', async () => {
    expect(app.logLines.filter((line) => JSON.parse(line).level >= 50)).toEqual([]);
    expect((await app.signInTokens('ada@example.com', password)).status).toBe(200);
  });
});
