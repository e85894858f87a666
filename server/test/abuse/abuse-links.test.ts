import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addressOf } from '../../src/http/endpoint.ts';
import { routes } from '../../src/routes.gen.ts';
import { MailServer } from '../support/mail-server.ts';
import { chosen, gone, invalid, mailedToken, opens, resetWith, startWithMail } from '../support/recovery.ts';
import { beginSignIn, neutral } from '../support/sign-in.ts';
import { type Client, password, type TestApp } from '../support/test-app.ts';

const email = 'grace@example.com';
const resetRoute = '/userAccount/password/reset/token';
const hour = 3_600_000;

describe('the secret of a link (T3, N8)', () => {
  let mails: MailServer;
  let app: TestApp;
  let admin: Client;
  let member: Client;
  let inviteeId: string;
  let reset: string;
  let invitation: string;

  beforeAll(async () => {
    mails = await MailServer.start();
    app = await startWithMail(mails);
    admin = await app.setUp();
    member = await app.member(admin, email);
    inviteeId = (await admin.post('/users', { fullName: 'Guest', email: 'guest@example.com' })).body._id;
    reset = await mailedToken({ app, mails }, email);
    invitation = (await admin.post(`/users/${inviteeId}/invite-link`)).body.link.split('#token=')[1];
  });
  afterAll(async () => {
    await app.close();
    await mails.stop();
  });

  const closed = routes.filter(({ policy }) => policy.who !== 'anyone');
  const named = closed.map((route) => [`${route.method} ${route.path}`, route] as const);

  it('is tried on every route that takes a credential', () => {
    expect(closed.length).toBeGreaterThan(40);
    expect(new Set(closed.map(({ policy }) => policy.who))).toEqual(
      new Set(['holder', 'member', 'admin', 'adminOrSelf', 'service']),
    );
  });

  it.each(named.filter(([, { path }]) => path !== resetRoute))(
    '401: opens nothing at %s, with and without a display prefix (AUTH-28, LINK-1)',
    async (_, route) => {
      const path = `/${addressOf(route).replace(/:\w+/g, inviteeId)}`;
      for (const secret of [reset, invitation]) {
        for (const value of [secret, `lkpat_${secret}`]) {
          const { status, body } = await app.with(value).call(route.method, path);
          // Where JSON-RPC is spoken, `code` is a number of its own.
          expect([status, body.error.data?.code ?? body.error.code]).toEqual([401, 'TOKEN_INVALID']);
        }
      }
    },
  );

  it('401: is neither a sign-in that was begun, nor a password, nor a code (AUTH-28)', async () => {
    const body = { method: 'password', credentials: { password }, email };
    const begun = await app.anonymous.post('/userAccount/authenticate', body, {
      headers: { 'x-session-token': reset },
    });
    expect(begun.status).toBe(401);
    expect(await opens(app, email, reset)).toBe(false);
    expect(await opens(app, 'guest@example.com', invitation)).toBe(false);
  });

  it('401: nothing but the secret of a link sets a password, told before the body is looked at (AUTH-28, AUTH-33, T3)', async () => {
    const pair = (await app.signInTokens(email)).body;
    const token = (await member.token({ expiryDays: 'never' })).credential ?? '';
    const others = {
      session: pair.accessToken,
      'refresh token': pair.refreshToken,
      'token with prefix': token,
      'token without prefix': token.replace('lkpat_', ''),
      'x-session-token': await beginSignIn(app, email),
      'service token': app.service(['USER_LOOKUP', 'FETCH_CONFIG']).credential ?? '',
      'a hash of a link': await hashOf(member.userId),
      'a user id': member.userId,
    };
    const refused = neutral(await resetWith(app, `lkl_${'A'.repeat(43)}`));
    expect(refused).toMatchObject(invalid);
    for (const [kind, value] of Object.entries(others)) {
      expect(neutral(await resetWith(app, value)), kind).toEqual(refused);
      expect(neutral(await resetWith(app, value, 'weak')), kind).toEqual(refused);
    }
    expect(await opens(app, email, password)).toBe(true);
  });

  async function hashOf(userId: string): Promise<string> {
    const query = app.services.db.read.selectFrom('one_time_links').where('user_id', '=', userId);
    return (await query.select('hash').executeTakeFirstOrThrow()).hash ?? '';
  }

  it('is no credential in the query, in the body, in a cookie or with another scheme (AUTH-1, AUTH-19)', async () => {
    const body = { password: chosen, token: reset };
    const elsewhere = [
      app.anonymous.post(`${resetRoute}?token=${reset}&access_token=${reset}`, body),
      app.anonymous.post(resetRoute, body, { headers: { cookie: `token=${reset}` } }),
      app.anonymous.post(resetRoute, body, { headers: { authorization: `Basic ${reset}` } }),
      app.anonymous.post(resetRoute, body, { headers: { authorization: reset } }),
      app.anonymous.post(resetRoute, body, { headers: { 'x-session-token': reset } }),
    ];
    for (const { status, body: told } of await Promise.all(elsewhere)) {
      expect([status, told.error.code]).toEqual([401, 'UNAUTHORIZED']);
    }
    expect(await opens(app, email, password)).toBe(true);
  });

  it('sets the password of its owner, whomever the body names; both kinds work after all that (INVITE-12, LINK-1)', async () => {
    const named = { userId: admin.userId, _id: admin.userId, email: 'ada@example.com', orgId: 'f'.repeat(24) };
    const response = await app.with(reset).post(resetRoute, { password: chosen, ...named });
    expect(response.status).toBe(200);
    expect([await opens(app, email, chosen), await opens(app, 'ada@example.com', password)]).toEqual([true, true]);
    app.clock.advance(48 * hour - 1);
    expect((await resetWith(app, invitation)).status).toBe(200);
    expect(await opens(app, 'guest@example.com', chosen)).toBe(true);
    for (const used of [reset, invitation]) expect(await resetWith(app, used)).toMatchObject(gone);
  });
});
