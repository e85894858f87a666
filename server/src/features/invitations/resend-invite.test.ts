import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { frontendUrl, Inviting } from '../../../test/support/inviting.ts';
import { linkIn, tokenIn } from '../../../test/support/mail-server.ts';
import { type Client, password } from '../../../test/support/test-app.ts';
import { apiErrors } from '../../base/api-errors.ts';

describe('POST /users/:id/resend-invite', () => {
  let it1: Inviting;
  let member: Client;

  beforeAll(async () => {
    it1 = await Inviting.start();
    member = await it1.app.member(it1.admin, 'grace@example.com');
  });
  afterEach(() => {
    it1.mail.faults = {};
  });
  afterAll(() => it1.close());

  const record = async (userId: string) => (await it1.admin.get(`/users/${userId}`)).body;

  it('200: mails a new link; the user is otherwise unchanged, and no one is told (INVITE-18, INVITE-22)', async () => {
    const { email, userId, token } = await it1.invitee();
    const [before, groups, since] = [await record(userId), await it1.groupsOf(userId), await it1.mark()];
    it1.app.clock.advance(60_000);
    const { status, body } = await it1.resend(userId.toUpperCase());
    expect([status, body]).toEqual([200, { message: 'Invite sent successfully' }]);
    expect([await record(userId), await it1.groupsOf(userId)]).toEqual([before, groups]);
    const { events, audit } = await since();
    const row = { action: 'user.invited', subject_id: userId, actor_user_id: it1.admin.userId, actor_token_id: null };
    expect([events, audit]).toEqual([[], [expect.objectContaining(row)]]);
    const mails = it1.mail.mailsTo(email);
    const subject = 'You are invited to join Example Ltd';
    expect(mails.map((mail) => mail.subject)).toEqual([subject, subject]);
    expect(tokenIn(it1.mailTo(email))).not.toBe(token);
  });

  it('410: every link but the last, however often it is resent (INVITE-22, LINK-3)', async () => {
    const { email, userId } = await it1.invitee();
    for (let turn = 0; turn < 3; turn += 1) expect((await it1.resend(userId)).status).toBe(200);
    const tokens = it1.mail.mailsTo(email).map(tokenIn);
    const verdicts = await Promise.all(tokens.map((token) => it1.verdict(token)));
    expect(verdicts).toEqual([410, 410, 410, 400]);
    const last = tokens.at(-1) ?? '';
    expect((await it1.use(last)).status).toBe(200);
    expect(await Promise.all(tokens.map((token) => it1.verdict(token)))).toEqual([410, 410, 410, 410]);
  });

  it('200: 16 at once leave one link that works (INVITE-22, LINK-3)', async () => {
    const { email, userId } = await it1.invitee();
    const responses = await Promise.all(Array.from({ length: 16 }, () => it1.resend(userId)));
    expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 16 }, () => 200));
    const verdicts = await Promise.all(it1.mail.mailsTo(email).map((mail) => it1.verdict(tokenIn(mail))));
    expect(verdicts.sort((a, b) => a - b)).toEqual([400, ...Array.from({ length: 16 }, () => 410)]);
    expect(await it1.list(`?search=${email}`)).toHaveLength(1);
  });

  it('200: with a token of user:invite alone, and the audit row names it (SCOPE-13, AUDIT-1)', async () => {
    const { userId } = await it1.invitee();
    const token = await it1.admin.token({ scopes: ['user:invite'] });
    expect((await it1.resend(userId, token)).status).toBe(200);
    expect((await it1.app.audit()).at(-1)).toMatchObject({ action: 'user.invited', actor_token_id: token.tokenId });
  });

  it('200: after the first link is expired, there is one of 48 hours again (INVITE-12, INVITE-18)', async () => {
    const { email, userId, token } = await it1.invitee();
    it1.app.clock.advance(49 * 3_600_000);
    it1.admin = await it1.app.signIn('ada@example.com');
    expect(await it1.verdict(token)).toBe(410);
    expect((await it1.resend(userId)).status).toBe(200);
    expect((await it1.use(tokenIn(it1.mailTo(email)))).status).toBe(200);
    member = await it1.app.signIn('grace@example.com');
  });

  it('200: someone restored is told of re-joining again, and who was only created of joining (INVITE-10, INVITE-18)', async () => {
    const { email, userId } = await it1.invitee();
    await it1.admin.delete(`/users/${userId}`);
    await it1.invite([email]);
    expect((await it1.resend(userId)).status).toBe(200);
    expect(it1.mailTo(email).subject).toBe('You are invited to re-join Example Ltd');
    const created = (await it1.admin.post('/users', { fullName: 'New', email: 'created@example.com' })).body;
    expect((await it1.resend(created._id)).status).toBe(200);
    expect(it1.mailTo('created@example.com').subject).toBe('You are invited to join Example Ltd');
  });

  it('200: the mail follows how people sign in at the moment, and ends the link of before (INVITE-22)', async () => {
    const { email, userId, token } = await it1.invitee();
    it1.signInByPassword(false);
    expect((await it1.resend(userId)).status).toBe(200);
    expect(linkIn(it1.mailTo(email))).toBe(`${frontendUrl}/sign-in`);
    it1.signInByPassword(true);
    expect(await it1.verdict(token)).toBe(410);
  });

  it('200: to the address of before, where a token has changed it (AUTH-49)', async () => {
    const { email, userId } = await it1.invitee();
    const token = await it1.admin.token({ scopes: ['user:write', 'user:invite'] });
    await token.patch(`/users/${userId}/email`, { email: `evil-${email}` });
    it1.mail.clear();
    expect((await it1.resend(userId, token)).status).toBe(200);
    expect(it1.mail.asked.filter((address) => address.startsWith('evil'))).toEqual([]);
    expect(tokenIn(it1.mailTo(email))).toMatch(/^lkl_/);
  });

  it('400: someone who has logged in, or counts as such by hand (INVITE-19, USER-31)', async () => {
    const { email, userId } = await it1.settled();
    await it1.app.signInTokens(email);
    const byHand = await it1.invitee();
    await it1.admin.put(`/users/${byHand.userId}`, { email: byHand.email, hasLoggedIn: true });
    const asked = it1.mail.asked.length;
    for (const id of [userId, byHand.userId, member.userId]) {
      const { status, body } = await it1.resend(id);
      expect([status, body.message]).toEqual([400, 'User has already accepted the invite']);
    }
    expect([it1.mail.asked.length, await it1.verdict(byHand.token)]).toEqual([asked, 400]);
  });

  it('200: hasLoggedIn set to false by hand has a link mailed to its owner alone, and no more (INVITE-18, USER-31)', async () => {
    const { email, userId } = await it1.settled();
    await it1.app.signInTokens(email);
    await it1.admin.put(`/users/${userId}`, { email, hasLoggedIn: false });
    const { status, body } = await it1.resend(userId);
    expect([status, Object.keys(body)]).toEqual([200, ['message']]);
    expect((await it1.app.signInTokens(email, password)).status).toBe(200);
  });

  it('400: accepted stays accepted, whatever the user sets (INVITE-19, USER-31)', async () => {
    const { email, userId } = await it1.settled();
    const user = await it1.app.signIn(email);
    expect((await user.put(`/users/${userId}`, { email, hasLoggedIn: false })).status).toBe(200);
    expect(await it1.resend(userId)).toMatchObject({ status: 400, body: { message: apiErrors.inviteAccepted.text } });
  });

  it('404: no one, someone deleted, a group; 400: no id (INVITE-20)', async () => {
    const { userId, token } = await it1.invitee();
    await it1.admin.delete(`/users/${userId}`);
    for (const id of ['f'.repeat(24), userId, (await it1.newGroup()).id]) {
      expect((await it1.resend(id)).status).toBe(404);
    }
    expect([(await it1.resend('not-an-id')).status, await it1.verdict(token)]).toEqual([400, 401]);
  });

  it('403: anyone who is no administrator learns nothing (A1, HTTP-2)', async () => {
    const { userId } = await it1.invitee();
    for (const id of [userId, member.userId, 'f'.repeat(24), 'not-an-id']) {
      const { status, body } = await it1.resend(id, member);
      expect([status, body.error.code]).toEqual([403, 'ADMIN_REQUIRED']);
    }
  });

  it('502: names who did not get it; the link of before works no longer, and the call can be repeated (INVITE-14, INVITE-22)', async () => {
    const { email, userId, token } = await it1.invitee();
    it1.mail.faults = { refuse: () => 452 };
    const { status, body } = await it1.resend(userId);
    const message = 'The invite mail could not be sent. Please check the SMTP configuration';
    expect([status, body.message, body.failed]).toEqual([502, message, [email]]);
    expect([(await it1.listed(email)).status, await it1.verdict(token)]).toEqual(['failed', 410]);
    it1.mail.faults = {};
    expect((await it1.resend(userId)).status).toBe(200);
    expect((await it1.listed(email)).status).toBe('pending');
  });
});
