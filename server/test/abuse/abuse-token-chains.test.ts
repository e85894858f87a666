import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { day } from '../../src/base/clock.ts';
import { claimsOf } from '../support/jwt.ts';
import { type Client, TestApp, type TestResponse } from '../support/test-app.ts';

const path = '/personal-access-tokens';
const pool = ['token:read', 'token:write', 'token:admin', 'user:read', 'org:read'];
const never = Number.POSITIVE_INFINITY;

type Step =
  | {
      readonly kind: 'create';
      readonly by: number;
      readonly scopes: readonly string[] | null;
      readonly expiryDays: number | 'never';
    }
  | { readonly kind: 'list'; readonly by: number; readonly door: '' | '/admin' }
  | { readonly kind: 'revoke'; readonly by: number; readonly target: number; readonly door: '' | '/admin' }
  | { readonly kind: 'wait'; readonly days: number };

const pick = fc.nat({ max: 1_000 });
const scopes = fc.subarray(pool, { minLength: 1 });
const expiryDays = fc.constantFrom(30, 90, 365, 'never' as const);
const door = fc.constantFrom('' as const, '/admin' as const);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('create' as const), by: pick, scopes: fc.option(scopes), expiryDays }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('list' as const), by: pick, door }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('revoke' as const), by: pick, target: pick, door }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('wait' as const), days: fc.integer({ min: 1, max: 60 }) }) },
);
/** The scopes and lifetimes of the two tokens that a sequence begins with. Most can create. */
const root = fc.record({ scopes: scopes.map((some) => [...new Set(['token:write', ...some])]), expiryDays });

/** A credential obtained, and what the rules say of it. */
interface Held {
  readonly client: Client;
  readonly id: string;
  readonly scopes: ReadonlySet<string>;
  readonly expiresAtMs: number;
  readonly parent: Held | null;
  revoked: boolean;
}

describe('K1: whatever a token does, it gets nothing wider or longer', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  /** The rules, in short: what holds of a token, and of all before it. */
  const isDead = (held: Held | null): boolean =>
    held !== null && (held.revoked || app.clock.now() >= held.expiresAtMs || isDead(held.parent));

  function hold(body: TestResponse['body'], parent: Held | null): Held {
    const { id, accessToken, expiresAt, scopes: granted } = body.token;
    const held = { client: app.with(accessToken), id, parent, revoked: false };
    const expiresAtMs = expiresAt === 'Never' ? never : Date.parse(expiresAt);
    return { ...held, scopes: new Set<string>(granted), expiresAtMs };
  }

  async function create(held: Held[], by: Held, input: Step & { kind: 'create' }): Promise<void> {
    const { status, body } = await by.client.post(path, {
      name: 'x',
      expiryDays: input.expiryDays,
      ...(input.scopes ? { scopes: input.scopes } : {}),
    });
    const asked = input.scopes ?? [...by.scopes];
    const isWithin = asked.every((name) => by.scopes.has(name));
    const expected = by.scopes.has('token:write') && isWithin ? 201 : 403;
    expect(status).toBe(isDead(by) ? 401 : expected);
    if (status !== 201) return;
    const made = hold(body, by);
    held.push(made);
    expect(made.scopes).toEqual(new Set(asked));
    const wantedMs = input.expiryDays === 'never' ? never : app.clock.now() + input.expiryDays * day;
    expect(made.expiresAtMs).toBe(
      Math.min(by.expiresAtMs, wantedMs === never ? never : Math.floor(wantedMs / 1_000) * 1_000),
    );
    const { exp = never / 1_000, scope } = claimsOf(body.token.accessToken);
    expect(Number(exp) * 1_000).toBe(made.expiresAtMs);
    expect(new Set(String(scope).split(' '))).toEqual(made.scopes);
  }

  async function list(by: Held, { door }: Step & { kind: 'list' }): Promise<void> {
    const { status, text } = await by.client.get(path + door);
    const expected = by.scopes.has(door === '' ? 'token:read' : 'token:admin') ? 200 : 403;
    expect(status).toBe(isDead(by) ? 401 : expected);
    expect(text).not.toMatch(/eyJ|accessToken|hash/);
  }

  async function revoke(by: Held, target: Held, { door }: Step & { kind: 'revoke' }): Promise<void> {
    const { status } = await by.client.delete(`${path}${door}/${target.id}`);
    const may = door === '' ? by.scopes.has('token:write') || by === target : by.scopes.has('token:admin');
    const expected = isDead(target) ? 404 : 200;
    if (isDead(by)) expect(status).toBe(401);
    else expect(status).toBe(may ? expected : 403);
    if (status === 200) target.revoked = true;
  }

  async function take(held: Held[], one: Step): Promise<void> {
    if (one.kind === 'wait') {
      app.clock.advance(one.days * day);
      return;
    }
    const by = held[one.by % held.length];
    if (!by) return;
    if (one.kind === 'create') await create(held, by, one);
    if (one.kind === 'list') await list(by, one);
    const target = one.kind === 'revoke' ? held[one.target % held.length] : undefined;
    if (one.kind === 'revoke' && target) await revoke(by, target, one);
  }

  /** Checks every credential obtained, by the service's own responses: no wider and no longer than all before it. */
  async function check(all: readonly Held[]): Promise<void> {
    for (const held of all) {
      for (let above = held.parent; above; above = above.parent) {
        expect([...held.scopes].filter((name) => !above?.scopes.has(name))).toEqual([]);
        expect(held.expiresAtMs).toBeLessThanOrEqual(above.expiresAtMs);
      }
      expect((await held.client.get('/org')).status === 401).toBe(isDead(held));
    }
  }

  it('over random sequences of create, list, revoke and waiting (SCOPE-1, SCOPE-22, SCOPE-23, SCOPE-24)', async () => {
    const startMs = app.clock.now();
    const roots = fc.tuple(root, root);
    const sequence = fc.array(step, { minLength: 4, maxLength: 14 });
    let obtained = 0;
    await fc.assert(
      fc.asyncProperty(roots, sequence, async (begin, steps) => {
        const held: Held[] = [];
        for (const input of begin) held.push(hold((await admin.post(path, { name: 'root', ...input })).body, null));
        for (const one of steps) await take(held, one);
        await check(held);
        obtained += held.length;
        app.clock.set(startMs);
      }),
      { numRuns: 40 },
    );
    expect(obtained).toBeGreaterThan(80);
  }, 60_000);

  it('a chain of fifty ends with its first link, at once (SCOPE-24)', async () => {
    const chain = [await admin.token({ expiryDays: 'never' })];
    for (let link = 1; link < 50; link += 1) chain.push(await (chain.at(-1) ?? admin).token({ expiryDays: 'never' }));
    const [first] = chain;
    await admin.delete(`${path}/${first?.tokenId}`);
    const responses = await Promise.all(chain.map((link) => link.get('/org')));
    expect(new Set(responses.map(({ status, body }) => `${status} ${body.error.code}`))).toEqual(
      new Set(['401 TOKEN_REVOKED']),
    );
  });

  it('a removed scope does not come back by way of a child (SCOPE-9, SCOPE-22)', async () => {
    const wide = await admin.token({ scopes: ['token:write', 'org:read', 'user:read'] });
    await app.stop();
    const narrowed = await TestApp.start(
      { DATA_DIR: app.dataDir, MCP_SCOPES: 'token:write token:read user:read' },
      app.clock,
    );
    const narrow = narrowed.with(wide.credential);
    expect((await narrow.get('/org')).status).toBe(403);
    const child = await narrow.token();
    expect(claimsOf(child.credential ?? '')['scope']).toBe('token:write user:read');
    await narrowed.stop();
    app = await TestApp.start({ DATA_DIR: app.dataDir }, app.clock);
    expect((await app.with(wide.credential).get('/org')).status).toBe(200);
    expect((await app.with(child.credential).get('/org')).status).toBe(403);
    expect((await app.with(child.credential).get('/users')).status).toBe(200);
  });
});
