import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { frontendUrl, Inviting } from '../../../test/support/inviting.ts';
import { tokenIn } from '../../../test/support/mail-server.ts';
import {
  type Client,
  type Json,
  organization,
  password,
  TestApp,
  type TestResponse,
} from '../../../test/support/test-app.ts';
import { addressOf } from '../../http/endpoint.ts';
import { routes } from '../../routes.gen.ts';

describe('POST /users/:id/invite-link', () => {
  let it1: Inviting;
  let member: Client;
  let count = 0;

  beforeAll(async () => {
    it1 = await Inviting.start();
    member = await it1.app.member(it1.admin, 'grace@example.com');
  });
  afterAll(() => it1.close());

  const linkFor = (id: string, client: Client = it1.admin) => client.post(`/users/${id}/invite-link`);
  const tokenOf = ({ body }: TestResponse): string => body.link.split('#token=')[1];
  async function created(): Promise<Json> {
    count += 1;
    return (await it1.admin.post('/users', { fullName: 'New Comer', email: `new-${count}@example.com` })).body;
  }

  it('201: a link of 48 hours from the configuration, recorded, and nothing is mailed (INVITE-23, INVITE-26, MAIL-5, AUDIT-1)', async () => {
    const { _id } = await created();
    const since = await it1.mark();
    const headers = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'http' };
    const { status, body } = await it1.admin.call('POST', `/users/${_id}/invite-link`, { headers });
    const link = expect.stringMatching(/^https:\/\/people\.example\/console\/reset-password#token=lkl_[\w-]{43}$/);
    const expiresAt = new Date(it1.app.clock.now() + 48 * 3_600_000).toISOString();
    expect([status, body]).toEqual([201, { link, expiresAt }]);
    const { events, audit } = await since();
    const row = { action: 'invitation.shown', subject_id: _id, actor_user_id: it1.admin.userId, details: {} };
    expect([events, audit, it1.mail.asked]).toEqual([[], [expect.objectContaining(row)], []]);
  });

  it('200: it sets a password once, and the person signs in (INVITE-12, INVITE-23)', async () => {
    const { _id, email } = await created();
    const token = tokenOf(await linkFor(_id));
    expect((await it1.use(token)).status).toBe(200);
    expect((await it1.use(token)).status).toBe(410);
    expect((await it1.app.signInTokens(email)).status).toBe(200);
  });

  it('201: without any mail server as well, and for an individual account (INVITE-23, INVITE-26)', async () => {
    const app = await TestApp.start();
    await app.anonymous.post('/org', { ...organization, accountType: 'individual' });
    const admin = await app.signIn(organization.contactEmail);
    const { body } = await admin.post('/users', { fullName: 'New', email: 'new@example.com' });
    const token = tokenOf(await linkFor(body._id, admin));
    await app.with(token).post('/userAccount/password/reset/token', { password });
    expect((await app.signInTokens('new@example.com')).status).toBe(200);
    await app.close();
  });

  it('201: it takes the place of the link that was mailed, and a mailed one of it (LINK-3)', async () => {
    const { email, userId, token } = await it1.invitee();
    const shown = [await linkFor(userId), await linkFor(userId)].map(tokenOf);
    const verdicts = () => Promise.all([token, ...shown].map((one) => it1.verdict(one)));
    expect(await verdicts()).toEqual([410, 410, 400]);
    expect((await it1.resend(userId)).status).toBe(200);
    expect([...(await verdicts()), await it1.verdict(tokenIn(it1.mailTo(email)))]).toEqual([410, 410, 410, 400]);
  });

  it('410, 401: it ends with a changed e-mail and with the account (LINK-3)', async () => {
    const [moved, gone] = [await created(), await created()];
    const tokens = [tokenOf(await linkFor(moved._id)), tokenOf(await linkFor(gone._id))];
    await it1.admin.patch(`/users/${moved._id}/email`, { email: `moved-${moved.email}` });
    await it1.admin.delete(`/users/${gone._id}`);
    expect(await Promise.all(tokens.map((token) => it1.verdict(token)))).toEqual([410, 401]);
    await it1.admin.post(`/users/${gone._id}/restore`);
    expect(await it1.verdict(tokens[1] ?? '')).toBe(410);
    expect((await linkFor(gone._id)).status).toBe(201);
  });

  it('201: where no one signs in by password it leads to the sign-in page (INVITE-11)', async () => {
    const { _id } = await created();
    it1.signInByPassword(false);
    expect((await linkFor(_id)).body).toEqual({ link: `${frontendUrl}/sign-in`, expiresAt: null });
    it1.signInByPassword(true);
  });

  it('400: anyone who has been in, whatever hasLoggedIn was set to (INVITE-26, USER-31)', async () => {
    const [fresh, onlyPassword, signedIn] = [await created(), await it1.settled(), await it1.settled()];
    await it1.app.signInTokens(signedIn.email);
    const users = [
      onlyPassword,
      signedIn,
      { userId: member.userId, email: 'grace@example.com' },
      { userId: it1.admin.userId, email: 'ada@example.com' },
    ];
    for (const { userId, email } of users) {
      for (const hasLoggedIn of [true, false]) {
        await it1.admin.put(`/users/${userId}`, { email, hasLoggedIn });
        const { status, body } = await linkFor(userId);
        expect([status, body.message]).toEqual([400, 'User has already accepted the invite']);
      }
    }
    await it1.admin.put(`/users/${fresh._id}`, { email: fresh.email, hasLoggedIn: true });
    expect((await linkFor(fresh._id)).status).toBe(400);
    await it1.admin.put(`/users/${fresh._id}`, { email: fresh.email, hasLoggedIn: false });
    expect((await linkFor(fresh._id)).status).toBe(201);
  });

  it('400: someone without a password who signed in is no newcomer either (INVITE-26, USER-31)', async () => {
    const { _id, email } = await created();
    it1.write('UPDATE users SET signed_in_at = 1 WHERE id = ?', _id);
    await it1.admin.put(`/users/${_id}`, { email, hasLoggedIn: false });
    expect((await linkFor(_id)).status).toBe(400);
  });

  it('403: a personal access token, with every scope there is (INVITE-26, SCOPE-21)', async () => {
    const { _id } = await created();
    const token = await it1.admin.token();
    for (const id of [_id, 'f'.repeat(24), 'not-an-id']) {
      const { status, body } = await linkFor(id, token);
      expect([status, body.error.code]).toEqual([403, 'FORBIDDEN']);
    }
  });

  it('403: a member, for oneself too (A1, HTTP-2)', async () => {
    for (const id of [(await created())._id, member.userId, 'not-an-id']) {
      const { status, body } = await linkFor(id, member);
      expect([status, body.error.code]).toEqual([403, 'ADMIN_REQUIRED']);
    }
  });

  it('403: with INVITE_LINKS=off, whoever it is for (INVITE-26)', async () => {
    const app = await TestApp.start({ INVITE_LINKS: 'off' });
    const admin = await app.setUp();
    const { body: user } = await admin.post('/users', { fullName: 'New', email: 'new@example.com' });
    for (const id of [user._id, admin.userId, 'f'.repeat(24), 'not-an-id']) {
      const { status, body } = await linkFor(id, admin);
      expect([status, body.error.code]).toEqual([403, 'FORBIDDEN']);
      expect(body.message).toContain('INVITE_LINKS');
    }
    expect(await app.services.db.read.selectFrom('one_time_links').selectAll().execute()).toEqual([]);
    await app.close();
  });

  it('404: no one, and someone deleted; 400: no id (INVITE-26)', async () => {
    const { _id } = await created();
    await it1.admin.delete(`/users/${_id}`);
    for (const id of ['f'.repeat(24), _id]) expect((await linkFor(id)).status).toBe(404);
    expect((await linkFor('not-an-id')).status).toBe(400);
  });

  it('200: no GET ever shows a link, its hash or its token (INVITE-23)', async () => {
    const [shown, mailed] = [await created(), await it1.invitee()];
    const tokens = [tokenOf(await linkFor(shown._id)), mailed.token];
    const { db } = it1.app.services;
    const hashes = (await db.read.selectFrom('one_time_links').select('hash').execute()).flatMap(
      ({ hash }) => hash ?? [],
    );
    const group = (await it1.admin.get('/userGroups')).body.groups[0]._id;
    const team = (await it1.admin.post('/teams', { name: 'T' })).body;
    const wide = await it1.admin.token();
    const gets = routes.filter(({ method }) => method === 'GET').map(addressOf);
    expect(gets).toContain('/api/v1/users/invitations');
    const ids = [shown._id, mailed.userId, group, team.data?.id ?? team._id ?? group];
    const paths = new Set(gets.flatMap((address) => ids.map((id) => `/${address.replace(/:\w+/g, id)}`)));
    const clients = [it1.admin, wide, it1.app.service(['USER_LOOKUP', 'FETCH_CONFIG'])];
    for (const [path, client] of [...paths].flatMap((path) => clients.map((client) => [path, client] as const))) {
      const { text, headers } = await client.get(path);
      const all = text + JSON.stringify([...headers]);
      const found = [...tokens, ...hashes].filter((secret) => all.includes(secret));
      expect(found, `${path} shows it`).toEqual([]);
    }
    expect(await Promise.all(tokens.map((token) => it1.verdict(token)))).toEqual([400, 400]);
  });
});
