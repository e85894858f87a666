import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { frontendUrl, Inviting } from '../../../test/support/inviting.ts';
import { linkIn, tokenIn } from '../../../test/support/mail-server.ts';

const sent = { message: 'Invite sent successfully' };

describe('POST /users/bulk/invite', () => {
  let it1: Inviting;

  beforeAll(async () => {
    it1 = await Inviting.start();
  });
  afterAll(() => it1.close());

  const recordOf = async (email: string) => (await it1.admin.get(`/users/${await it1.idOf(email)}`)).body;

  it('200: accounts that have never logged in, named by the local part, in everyone (INVITE-1, INVITE-6, INVITE-8, INVITE-9)', async () => {
    const emails = ['new.one@example.com', 'two@bücher.example'];
    const { status, body } = await it1.invite(emails);
    expect([status, body]).toEqual([200, sent]);
    const now = new Date(it1.app.clock.now()).toISOString();
    for (const [email, fullName] of [
      ['new.one@example.com', 'new.one'],
      ['two@xn--bcher-kva.example', 'two'],
    ] as const) {
      const record = await recordOf(email);
      expect(record).toMatchObject({ email, fullName, hasLoggedIn: false, isDeleted: false, createdAt: now });
      expect(record.slug).toMatch(/^user-\d+$/);
      expect(await it1.groupsOf(record._id)).toEqual(['everyone']);
    }
  });

  it('200: one event and one audit row a person, by session and by token (INVITE-9, EVENT-5, EVENT-8, AUDIT-1)', async () => {
    const token = await it1.admin.token({ scopes: ['user:invite'] });
    for (const [client, actor_token_id] of [
      [it1.admin, null],
      [token, token.tokenId],
    ] as const) {
      const [email = ''] = it1.fresh(1);
      const since = await it1.mark();
      expect((await it1.invite([email], undefined, client)).status).toBe(200);
      const userId = await it1.idOf(email);
      const { orgId } = await recordOf(email);
      const { events, audit } = await since();
      const payload = { orgId, userId, email, fullName: email.split('@')[0], syncAction: 'immediate' };
      expect(events.map((event) => [event.event_type, event.payload])).toEqual([['userAdded', payload]]);
      const row = { action: 'user.created', subject_id: userId, details: { invited: true }, network: '127.0.0.1' };
      expect(audit).toMatchObject([{ ...row, org_id: orgId, actor_user_id: it1.admin.userId, actor_token_id }]);
      expect(audit).toHaveLength(1);
    }
  });

  it('200: the mail names the organization by its shortName and holds a link from the configuration (INVITE-10, INVITE-11, MAIL-5)', async () => {
    await it1.admin.patch('/org', { shortName: 'Ex & Co' });
    const [email = ''] = it1.fresh(1);
    const headers = {
      host: 'evil.example',
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'gopher',
      forwarded: 'host=evil.example;proto=gopher',
      origin: 'https://evil.example',
      referer: 'https://evil.example/',
    };
    const { status } = await it1.admin.post('/users/bulk/invite', { emails: [email] }, { headers });
    expect(status).toBe(200);
    const mail = it1.mailTo(email);
    expect([mail.to, mail.subject]).toEqual([[email], 'You are invited to join Ex & Co']);
    expect(linkIn(mail)).toMatch(/^https:\/\/people\.example\/console\/reset-password#token=lkl_[\w-]{43}$/);
    expect([mail.html.includes(linkIn(mail)), mail.raw.includes('evil.example')]).toEqual([true, false]);
    expect(mail.raw).not.toContain('gopher');
  });

  it('200: the link sets a password once, and the person signs in (INVITE-12, AUTH-7)', async () => {
    const { email, token, userId } = await it1.invitee();
    expect((await it1.use(token)).status).toBe(200);
    expect((await it1.use(token)).status).toBe(410);
    expect((await it1.app.signInTokens(email)).status).toBe(200);
    expect((await it1.admin.get(`/users/${userId}`)).body.hasLoggedIn).toBe(true);
  });

  it('410: a used link stays used when the clock is set back (D7, LINK-2)', async () => {
    const { token } = await it1.invitee();
    expect((await it1.use(token)).status).toBe(200);
    it1.app.clock.advance(-3_600_000);
    expect(await it1.verdict(token)).toBe(410);
    it1.app.clock.advance(3_600_000);
  });

  it('410: the link is valid for 48 hours to the millisecond; 410 for 30 days, then 401 (INVITE-12, ERR-21)', async () => {
    const inviting = await Inviting.start();
    const { clock } = inviting.app;
    const { token } = await inviting.invitee();
    const statusAfter = async (ms: number) => {
      clock.advance(ms);
      return inviting.verdict(token);
    };
    const [hour, day] = [3_600_000, 86_400_000];
    expect(await statusAfter(48 * hour - 1)).toBe(400);
    expect(await statusAfter(1)).toBe(410);
    expect(await statusAfter(30 * day - 1)).toBe(410);
    expect(await statusAfter(1)).toBe(401);
    await inviting.close();
  });

  it('200: where no one signs in by password the mail leads to the sign-in page (INVITE-11, INVITE-22)', async () => {
    it1.signInByPassword(false);
    const emails = it1.fresh(1);
    const [email = ''] = emails;
    expect((await it1.invite(emails)).status).toBe(200);
    expect(linkIn(it1.mailTo(email))).toBe(`${frontendUrl}/sign-in`);
    expect(it1.mailTo(email).text).not.toContain('token=');
    it1.signInByPassword(true);
    expect((await it1.resend(await it1.idOf(email))).status).toBe(200);
    expect(linkIn(it1.mailTo(email))).toContain('/reset-password#token=lkl_');
  });

  it('200: a deleted person comes back with the same id and name, and none of what was before works (INVITE-7, INVITE-9, INVITE-10, AUTH-40, LINK-3)', async () => {
    const group = await it1.newGroup();
    const { email, userId } = await it1.settled();
    await it1.admin.patch(`/users/${userId}/fullname`, { fullName: 'Back Again' });
    const user = await it1.app.signIn(email);
    const old = await user.token({ expiryDays: 'never' });
    await it1.admin.delete(`/users/${userId}`);
    it1.mail.clear();
    const since = await it1.mark();
    expect((await it1.invite([email], [group.id])).body).toEqual(sent);
    const record = (await it1.admin.get(`/users/${userId}`)).body;
    expect(record).toMatchObject({ _id: userId, email, fullName: 'Back Again', hasLoggedIn: false, isDeleted: false });
    expect(await it1.groupsOf(userId)).toEqual(['everyone', group.name].sort());
    const { events, audit } = await since();
    const payload = { orgId: record.orgId, userId, email, fullName: 'Back Again', syncAction: 'immediate' };
    expect(events.map((event) => [event.event_type, event.payload])).toEqual([['userAdded', payload]]);
    const restored = { action: 'user.restored', subject_id: userId, details: { invited: true, revokedTokens: 1 } };
    expect(audit.filter(({ action }) => action === 'user.restored')).toMatchObject([restored]);
    expect(audit.map(({ action }) => action)).not.toContain('user.created');
    for (const client of [user, old]) expect((await client.get('/org')).status).toBe(401);
    expect((await it1.app.signInTokens(email)).status).toBe(401);
    const mails = it1.mail.mailsTo(email);
    expect(mails.map(({ subject }) => subject)).toEqual(['You are invited to re-join Ex & Co']);
    expect((await it1.use(tokenIn(it1.mailTo(email)))).status).toBe(200);
    expect((await it1.app.signInTokens(email)).status).toBe(200);
    for (const client of [user, old]) expect((await client.get('/org')).status).toBe(401);
  });

  it('410: the invitation that someone deleted had stays dead when the person comes back (LINK-3, INVITE-7)', async () => {
    const { email, userId, token } = await it1.invitee();
    await it1.admin.delete(`/users/${userId}`);
    expect(await it1.verdict(token)).toBe(401);
    expect((await it1.invite([email])).status).toBe(200);
    expect([await it1.verdict(token), await it1.verdict(tokenIn(it1.mailTo(email)))]).toEqual([410, 400]);
  });

  it('200: active people in the list are left as they are, and get no mail (INVITE-9, INVITE-13)', async () => {
    const group = await it1.newGroup();
    const [email = ''] = it1.fresh(1);
    const known = await it1.invitee();
    const before = (await it1.admin.get(`/users/${known.userId}`)).body;
    it1.mail.clear();
    const since = await it1.mark();
    const { status, body } = await it1.invite([known.email, email, 'ada@example.com'], [group.id]);
    expect([status, body]).toEqual([200, sent]);
    expect((await since()).events.map(({ payload }) => payload.email)).toEqual([email]);
    expect(it1.mail.asked).toEqual([email]);
    expect(await it1.groupsOf(known.userId)).toEqual(['everyone']);
    expect((await it1.admin.get(`/users/${known.userId}`)).body).toEqual(before);
    expect(await it1.verdict(known.token)).toBe(400);
    const joined = (await since()).audit.filter(({ action }) => action === 'group.members-added');
    expect(joined).toMatchObject([{ subject_id: group.id, details: { userIds: [await it1.idOf(email)] } }]);
  });

  const good = (count: number) => Array.from({ length: count }, (_, place) => `many-${place}@example.com`);

  it('200: into several groups, each named twice, and into none by an empty list (INVITE-1, INVITE-9)', async () => {
    const [one, two] = [await it1.newGroup(), await it1.newGroup()];
    const everyone = (await it1.admin.get('/userGroups?search=everyone')).body.groups[0]._id;
    const [first = '', second = ''] = it1.fresh(2);
    const wanted = [one.id, two.id, one.id.toUpperCase(), everyone];
    expect((await it1.invite([first], wanted)).status).toBe(200);
    expect(await it1.groupsOf(await it1.idOf(first))).toEqual(['everyone', one.name, two.name].sort());
    expect((await it1.invite([second], [])).status).toBe(200);
    expect(await it1.groupsOf(await it1.idOf(second))).toEqual(['everyone']);
  });

  it('200: 1,000 people, each with one account, one event and one mail with a link of its own (INVITE-4, INVITE-9)', async () => {
    it1.mail.clear();
    const since = await it1.mark();
    expect((await it1.invite(good(1_000))).body).toEqual(sent);
    expect((await since()).events.map(({ payload }) => payload.email)).toEqual(good(1_000));
    const mailed = it1.mail.mails.map(({ to }) => to.join());
    expect([mailed.length, new Set(mailed)]).toEqual([1_000, new Set(good(1_000))]);
    expect(new Set(it1.mail.mails.map(tokenIn)).size).toBe(1_000);
  });
});
