import { Agent, request } from 'node:http';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AnyEndpoint, addressOf } from '../../src/http/endpoint.ts';
import { routes } from '../../src/routes.gen.ts';
import { tries } from '../support/effort.ts';
import { secondConnection } from '../support/second-connection.ts';
import { addTrigger } from '../support/store-trigger.ts';
import { type Client, password, TestApp } from '../support/test-app.ts';

const agent = new Agent({ keepAlive: true, maxSockets: 20 });
const batch = 50;

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
const seed = Date.now() % 2 ** 31;
const bodies = fc.sample(fc.oneof(json, noise), { numRuns: tries(1_000), seed });

const targetOf = (route: AnyEndpoint) => addressOf(route).replace(/:\w+/, 'f'.repeat(24));

const taking = routes
  // The organization is made in a case of its own: where there is one, no body is looked at.
  .filter(({ method, path }) => method !== 'GET' && path !== '/org')
  .map((route) => [route.method, targetOf(route)] as const);

describe('1,000 random bodies on every route that takes one are never a fault of ours', () => {
  let app: TestApp;
  let admin: Client;
  let empty: TestApp;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    empty = await TestApp.start();
    // A body may be one that signs out: that shall hold for its own request only.
    const store = secondConnection(app);
    addTrigger(store, {
      name: 'stay_signed_in',
      on: 'AFTER UPDATE OF ended_at ON sessions',
      does: 'UPDATE sessions SET ended_at = NULL WHERE id = new.id AND ended_at IS NOT NULL',
    });
    store.close();
  });
  afterAll(async () => {
    agent.destroy();
    await app.close();
    await empty.close();
  });

  function send(to: TestApp, credential: string | null, [method, path]: readonly [string, string]) {
    const { port } = new URL(to.url);
    const authorization = credential === null ? {} : { authorization: `Bearer ${credential}` };
    const headers = { 'content-type': 'application/json', ...authorization };
    return (raw: Uint8Array) =>
      new Promise<number>((resolve, reject) => {
        const sent = request({ port, method, path, headers, agent }, (response) => {
          response.resume().on('end', () => resolve(response.statusCode ?? 0));
        });
        sent.on('error', reject).end(raw);
      });
  }

  /** Sends all bodies, some at a time; answers what answered with a fault, and how often which status came. */
  async function sendAll(sendBody: (raw: Uint8Array) => Promise<number>) {
    const faults: string[] = [];
    const counts = new Map<number, number>();
    for (let place = 0; place < bodies.length; place += batch) {
      const some = bodies.slice(place, place + batch);
      const statuses = await Promise.all(some.map(sendBody));
      for (const [at, status] of statuses.entries()) {
        counts.set(status, (counts.get(status) ?? 0) + 1);
        if (status < 200 || status >= 500) faults.push(`${status}: ${Buffer.from(some[at] ?? []).toString('base64')}`);
      }
    }
    return { faults, counts };
  }

  it.each(taking)(`%s %s (seed ${seed})`, async (...route) => {
    const policy = routes.find((one) => one.method === route[0] && targetOf(one) === route[1])?.policy;
    expect(policy).toBeDefined();
    const caller = policy?.who === 'service' ? app.service([policy.scope]) : admin;
    const { faults, counts } = await sendAll(send(app, caller.credential, route));
    expect(faults).toEqual([]);
    // What needs no session, or another credential, may refuse them all the same; the rest was looked at.
    expect(policy?.who === 'holder' || policy?.who === 'anyone' || !counts.has(401)).toBe(true);
    expect((await admin.get('/users')).status).toBe(200);
  });

  it(`POST /org while there is no organization (seed ${seed})`, async () => {
    const { faults, counts } = await sendAll(send(empty, null, ['POST', '/api/v1/org']));
    expect([faults, [...counts.keys()].filter((status) => status !== 400 && status !== 415)]).toEqual([[], []]);
    expect((await empty.anonymous.get('/org/exists')).body).toEqual({ exists: false });
  });

  it('nothing was logged as a fault, and everyone can still sign in', async () => {
    expect(app.logLines.filter((line) => JSON.parse(line).level >= 50)).toEqual([]);
    expect((await app.signInTokens('ada@example.com', password)).status).toBe(200);
  });
});
