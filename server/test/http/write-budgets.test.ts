import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hour, minute } from '../../src/base/clock.ts';
import { addressOf } from '../../src/http/endpoint.ts';
import { routes } from '../../src/routes.gen.ts';
import { Client, TestApp } from '../support/test-app.ts';

const nameOf = (route: (typeof routes)[number]) => `${route.method} ${addressOf(route).replace('/api/v1', '')}`;

/** Whether each call of a route is taken out of the budget of the user who makes it. Rule: HTTP-35. */
function countsForCaller({ policy, costs }: (typeof routes)[number]): boolean {
  return !['anyone', 'holder', 'service'].includes(policy.who) && costs !== 'nothing';
}

/** Routes that change something and whose calls are no writes of their caller, each with what bounds it. */
const boundedOtherwise = {
  'DELETE /personal-access-tokens/:tokenId': 'ends what there is',
  'DELETE /personal-access-tokens/admin/:tokenId': 'ends what there is',
  'DELETE /userAccount/sessions/:id': 'ends what there is',
  'GET /userAccount/oidc/callback': 'signInStart',
  'GET /userAccount/oidc/start': 'signInStart',
  'POST /oauth2/introspect': 'stores nothing',
  'POST /oauth2/revoke': 'ends what there is',
  'POST /oauth2/token': 'serviceToken',
  'POST /org': 'once',
  'POST /userAccount/authenticate': 'signIn',
  'POST /userAccount/email/confirm/token': 'redeems a link',
  'POST /userAccount/initAuth': 'signInStart',
  'POST /userAccount/login/otp/generate': 'recovery',
  'POST /userAccount/logout/manual': 'ends what there is',
  'POST /userAccount/password/forgot': 'recovery',
  'POST /userAccount/password/reset': 'passwordChange',
  'POST /userAccount/password/reset/token': 'redeems a link',
  'POST /userAccount/refresh/token': 'refresh',
  'POST /users/updateAppConfig': 'trusted service',
};

describe('what a member can write again and again', () => {
  let app: TestApp;
  let member: Client;
  const email = 'grace@example.com';
  beforeAll(async () => {
    app = await TestApp.start({ RATE_LIMIT: 'on' });
    member = await app.member(await app.setUp(), email);
  });
  afterAll(() => app.close());

  const refresh = async (refreshToken: string) => new Client(app, refreshToken, '').post('/userAccount/refresh/token');
  const tokenRows = async () =>
    (await app.services.db.read.selectFrom('session_tokens').select('hash').execute()).length;
  const records = async () => (await app.audit()).length;

  it('counts against a budget, at every route that changes something (HTTP-35, HTTP-37)', () => {
    const changing = routes.filter(({ method, isMcp, boundedBy }) => (method !== 'GET' && !isMcp) || boundedBy);
    const others = changing.filter((route) => !countsForCaller(route));
    expect(Object.fromEntries(others.map((route) => [nameOf(route), route.boundedBy]))).toEqual(boundedOtherwise);
  });

  it('leaves one record an hour of refreshes, and twenty access tokens (AUDIT-21, SESSION-13)', async () => {
    const signedIn = (await app.signInTokens(email)).body;
    const second = (await refresh(signedIn.refreshToken)).body;
    let { refreshToken } = second;
    const [told, tokens] = [await records(), await tokenRows()];
    for (let made = 0; made < 40; made += 1) {
      app.clock.advance(11_000);
      const { status, body } = await refresh(refreshToken);
      expect(status).toBe(200);
      refreshToken = body.refreshToken;
    }
    expect(await records()).toBeLessThanOrEqual(told + 1);
    expect(await tokenRows()).toBeLessThanOrEqual(tokens + 40 + 20);
    expect((await new Client(app, second.accessToken, '').get('/org')).body.error.code).toBe('TOKEN_INVALID');
    app.clock.advance(hour);
    const before = await records();
    expect((await refresh(refreshToken)).status).toBe(200);
    expect(await records()).toBe(before + 1);
  });

  it('429: more than 300 refreshes in an hour, or more writes than the budget has (HTTP-37, AUTH-14)', async () => {
    app.clock.advance(2 * hour);
    const { refreshToken } = (await app.signInTokens(email)).body;
    for (let made = 1; made < 300; made += 1) await app.services.limits.count('refresh', member.userId);
    const { status, body } = await refresh(refreshToken);
    expect(status).toBe(200);
    app.clock.advance(11_000 + minute);
    const refused = await refresh(body.refreshToken);
    expect([refused.status, refused.headers.get('ratelimit-limit')]).toEqual([429, '300']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(60);
    app.clock.advance(hour);
    const owner = { userId: member.userId, isAdmin: false };
    for (let made = 0; made < 300; made += 1) await app.services.limits.countWrite(owner);
    expect((await refresh(body.refreshToken)).status).toBe(429);
    app.clock.advance(minute);
    expect((await refresh(body.refreshToken)).status).toBe(200);
  });

  it('429: more than 300 sign-ins of one account from one network in an hour (HTTP-37)', async () => {
    app.clock.advance(2 * hour);
    for (let made = 0; made < 300; made += 1) await app.services.limits.count('signIn', `${member.userId} 127.0.0.1`);
    expect((await app.signInTokens(email)).status).toBe(429);
    app.clock.advance(hour);
    expect((await app.signInTokens(email)).status).toBe(200);
  });
});
