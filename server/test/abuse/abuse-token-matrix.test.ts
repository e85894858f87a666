import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { catalogue } from '../../src/access/scopes.ts';
import { type AnyEndpoint, addressOf } from '../../src/http/endpoint.ts';
import { routes } from '../../src/routes.gen.ts';
import { type Client, TestApp, type TestResponse, type TokenClient } from '../support/test-app.ts';

const scopeNames = catalogue.map(({ name }) => name);
const inviting = /^\/users(\/bulk\/invite(\/upload)?|\/:\w+\/(resend-invite|invite-link|restore))?$/;
/** Routes by which an administrator ends sessions and tokens of a user: SESSION-8 to SESSION-10. */
const overseeing = /^\/users\/:\w+\/(sessions(\/:\w+)?|personal-access-tokens|unblock)$/;

/** Returns the scope of a route by the rules SCOPE-10 to SCOPE-20, independently of the route's declaration. */
function ruledScope(method: string, path: string): string {
  const [, area = ''] = path.split('/');
  const verb = method === 'GET' ? 'read' : 'write';
  if (path.startsWith('/personal-access-tokens/admin')) return 'token:admin';
  if (path === '/configurationManager/smtpConfig') return 'org:admin';
  if (path === '/users/teams/list') return 'team:read';
  if (['settings', 'service-clients', 'webhooks', 'audit', 'events', 'orgAuthConfig'].includes(area))
    return 'org:admin';
  if (method === 'DELETE' && path === '/org') return 'org:admin';
  if (overseeing.test(path)) return 'org:admin';
  if (path === '/users/by-ids') return 'user:read';
  if (method === 'POST' && inviting.test(path)) return 'user:invite';
  if (method === 'DELETE' && /^\/users\/:\w+(\/invitation)?$/.test(path)) return 'user:delete';
  const areas: Record<string, string> = {
    'personal-access-tokens': 'token',
    users: 'user',
    userGroups: 'usergroup',
    teams: 'team',
    org: 'org',
  };
  return `${areas[area] ?? path}:${verb}`;
}

const address = (endpoint: AnyEndpoint) => {
  const url = addressOf(endpoint).replace(/:\w+/g, 'f'.repeat(24));
  return url.startsWith('/api/v1/') ? url.slice('/api/v1'.length) : `/${url}`;
};
/** Calls a route so that an admitted caller changes nothing: the body is not JSON. */
const knock = (caller: Client, endpoint: AnyEndpoint) =>
  endpoint.method === 'GET'
    ? caller.get(address(endpoint))
    : caller.call(endpoint.method, address(endpoint), { raw: '{', headers: { 'content-type': 'application/json' } });
const verdict = ({ status, body }: TestResponse) =>
  // Where JSON-RPC is spoken, `code` is a number of its own.
  status === 401 || status === 403 ? `${status} ${body.error.data?.code ?? body.error.code}` : 'admitted';
const title = ({ method, path }: AnyEndpoint) => `${method} ${path}`;

const personal = routes.filter(({ policy }) => !['anyone', 'holder', 'service'].includes(policy.who));
const internal = routes.filter(({ policy }) => policy.who === 'service');
/** Scope of each internal route, independently of the route's declaration. */
const ruledServiceScopes: Readonly<Record<string, string>> = {
  '/users/email/exists': 'USER_LOOKUP',
  '/users/internal/:id': 'USER_LOOKUP',
  '/users/updateAppConfig': 'FETCH_CONFIG',
  '/userAccount/internal/password/check': 'FETCH_CONFIG',
};
const serviceScopes = ['USER_LOOKUP', 'FETCH_CONFIG', 'EVENTS_READ', 'TOKEN_INTROSPECT'];
/** Routes for services besides users. */
const forBoth = personal.filter(({ policy }) => 'orService' in policy);
const scoped = personal.filter(({ policy }) => 'scope' in policy);
const sessionOnly = personal.filter(({ policy }) => 'sessionOnly' in policy);
/** Routes that say or decide by themselves what a token may do. */
const anyScope = personal.filter(({ policy }) => 'anyScope' in policy);

describe('K10: every route and every single scope', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  /** A token with one scope each. */
  let single: ReadonlyMap<string, TokenClient>;
  let everything: TokenClient;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
    const tokens = new Map<string, TokenClient>();
    for (const name of scopeNames) tokens.set(name, await admin.token({ scopes: [name] }));
    single = tokens;
    everything = await admin.token();
  });
  afterAll(() => app.close());

  it('knows routes of both kinds', () => {
    expect(scoped.length).toBeGreaterThan(8);
    expect(sessionOnly.length).toBeGreaterThan(0);
    expect(anyScope.map(title)).toEqual(['POST /mcp', 'POST /api/v1/mcp', 'GET /access', 'GET /whoami']);
    expect(scoped.length + sessionOnly.length + anyScope.length).toBe(personal.length);
    expect(internal.length).toBeGreaterThan(0);
  });

  it.each(scoped.map((endpoint) => [title(endpoint), endpoint] as const))(
    '%s: the ruled scope alone opens it, no other does (SCOPE-1, SCOPE-10 to SCOPE-21, ERR-15)',
    async (_, endpoint) => {
      const opening: string[] = [];
      const refusals = new Set<string>();
      const needed = ruledScope(endpoint.method, endpoint.path);
      for (const [name, token] of single) {
        const response = await knock(token, endpoint);
        if (verdict(response) === 'admitted') opening.push(name);
        else refusals.add(response.body.message);
      }
      expect(opening).toEqual([needed]);
      expect([...refusals]).toEqual([`Insufficient scope. Required: ${needed}`]);
    },
  );

  it.each(scoped.map((endpoint) => [title(endpoint), endpoint] as const))(
    '%s: all scopes but the ruled one do not open it; a session needs none (SCOPE-2)',
    async (_, endpoint) => {
      const needed = ruledScope(endpoint.method, endpoint.path);
      const others = await admin.token({ scopes: scopeNames.filter((name) => name !== needed) });
      expect(verdict(await knock(others, endpoint))).toBe('403 INSUFFICIENT_SCOPE');
      expect(verdict(await knock(everything, endpoint))).toBe('admitted');
      expect(verdict(await knock(admin, endpoint))).toBe('admitted');
    },
  );

  it.each(scoped.map((endpoint) => [title(endpoint), endpoint] as const))(
    '%s: a member’s token with every scope gets what the member’s session gets (SCOPE-1, SCOPE-21)',
    async (_, endpoint) => {
      const token = await member.token();
      const [bySession, byToken] = [await knock(member, endpoint), await knock(token, endpoint)];
      expect([byToken.status, byToken.body.error?.code]).toEqual([bySession.status, bySession.body.error?.code]);
    },
  );

  it.each(sessionOnly.map((endpoint) => [title(endpoint), endpoint] as const))(
    '%s: sessions only; a token with every scope is 403 (AUTH-32)',
    async (_, endpoint) => {
      expect(verdict(await knock(everything, endpoint))).toBe('403 FORBIDDEN');
      expect(verdict(await knock(admin, endpoint))).toBe('admitted');
    },
  );

  it.each(internal.map((endpoint) => [title(endpoint), endpoint] as const))(
    '%s: the ruled scope of a service alone opens it, no other does (SERVICE-1, SERVICE-3, ERR-15)',
    async (_, endpoint) => {
      const needed = ruledServiceScopes[endpoint.path] ?? 'none';
      for (const name of serviceScopes) {
        const response = await knock(app.service([name]), endpoint);
        expect([name, verdict(response)]).toEqual([name, name === needed ? 'admitted' : '403 INSUFFICIENT_SCOPE']);
        if (name === needed) continue;
        expect(response.body.message).toBe(`Insufficient scope. Required: ${needed}`);
        expect(response.headers.get('www-authenticate')).toBe(`Bearer error="insufficient_scope", scope="${needed}"`);
      }
      for (const scopes of [[], ['*'], scopeNames, serviceScopes.filter((name) => name !== needed)]) {
        expect(verdict(await knock(app.service(scopes), endpoint))).toBe('403 INSUFFICIENT_SCOPE');
      }
      expect(verdict(await knock(app.service(serviceScopes), endpoint))).toBe('admitted');
    },
  );

  it.each(internal.map((endpoint) => [title(endpoint), endpoint] as const))(
    '%s: no one’s session or personal token opens it, 401 (SERVICE-1)',
    async (_, endpoint) => {
      expect(verdict(await knock(app.anonymous, endpoint))).toBe('401 UNAUTHORIZED');
      const users = [admin, member, everything, ...single.values(), app.with('lkpat_bad')];
      for (const caller of users) expect(verdict(await knock(caller, endpoint))).toBe('401 TOKEN_INVALID');
    },
  );

  it('no personal route is opened by a service, whatever its scopes are called (SERVICE-2)', async () => {
    const callers = [app.service(), app.service([...serviceScopes, ...scopeNames, '*', 'admin'])];
    // Claims do not turn a service into a user.
    const { userId } = admin;
    callers.push(app.service(['USER_LOOKUP'], { userId, sub: userId, tokenType: 'session', isAdmin: true }));
    for (const endpoint of personal.filter((one) => !forBoth.includes(one))) {
      const responses = await Promise.all(callers.map((caller) => knock(caller, endpoint)));
      const told = responses.map((response) => `${title(endpoint)}: ${verdict(response)}`);
      expect(told).toEqual(callers.map(() => `${title(endpoint)}: 401 TOKEN_INVALID`));
    }
  });

  it('the event log is opened by its ruled scope of a service alone, and by nothing else of a service (EVENT-15, SERVICE-3, ERR-15)', async () => {
    expect(forBoth.map(title)).toEqual(['GET /events']);
    for (const endpoint of forBoth) {
      const wrong = [[], ['*'], ['org:admin'], scopeNames, serviceScopes.filter((name) => name !== 'EVENTS_READ')];
      for (const scopes of wrong) {
        const { status, body, headers } = await knock(app.service(scopes), endpoint);
        expect([scopes, status, body.message]).toEqual([scopes, 403, 'Insufficient scope. Required: EVENTS_READ']);
        expect(headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope", scope="EVENTS_READ"');
      }
      // Claims do not turn a service into a user.
      const { userId } = admin;
      const user = { userId, sub: userId, tokenType: 'session', isAdmin: true };
      expect(verdict(await knock(app.service(['USER_LOOKUP'], user), endpoint))).toBe('403 INSUFFICIENT_SCOPE');
      for (const scopes of [['EVENTS_READ'], serviceScopes]) {
        expect(verdict(await knock(app.service(scopes), endpoint))).toBe('admitted');
      }
    }
  });

  it('every personal route is 401 without a credential, with a bad one and for a removed owner (AUTH-1, AUTH-24)', async () => {
    const leaving = await app.member(admin, 'leaving@example.com');
    const callers = [app.anonymous, app.with('lkpat_bad'), leaving, await leaving.token()];
    await app.deleteUser(leaving.userId);
    // Not even if something is wrong with the store.
    await app.promote(leaving.userId);
    for (const endpoint of personal) {
      const responses = await Promise.all(callers.map((caller) => knock(caller, endpoint)));
      const told = responses.map((response) => `${title(endpoint)}: ${verdict(response)}`);
      const invalid = `${title(endpoint)}: 401 TOKEN_INVALID`;
      expect(told).toEqual([`${title(endpoint)}: 401 UNAUTHORIZED`, invalid, invalid, invalid]);
    }
  });
});
