import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Inviting } from '../../../test/support/inviting.ts';
import { tokenIn } from '../../../test/support/mail-server.ts';
import type { Json } from '../../../test/support/test-app.ts';

const text = 'The invite mail could not be sent. Please check the SMTP configuration';

describe('POST /users/bulk/invite: mail that does not go out', () => {
  let it1: Inviting;

  beforeAll(async () => {
    it1 = await Inviting.start();
  });
  afterEach(() => {
    it1.mail.faults = {};
  });
  afterAll(() => it1.close());

  const statusOf = async (email: string) => (await it1.listed(email))?.status;
  const isOneOf = (emails: readonly string[]) => (address: string) => emails.includes(address);

  /** Invites a user whose mail the server rejects; returns the user. */
  async function unreached(): Promise<{ readonly email: string; readonly userId: string }> {
    const [email = ''] = it1.fresh(1);
    it1.mail.faults = { refuse: () => 550 };
    expect((await it1.invite([email])).status).toBe(502);
    it1.mail.faults = {};
    return { email, userId: await it1.idOf(email) };
  }
  /** Makes the mail count as failed that the server has taken, as where the server is gone before it says so. */
  const lose = (userId: string) =>
    it1.write("UPDATE one_time_links SET delivery = 'failed' WHERE user_id = ? AND is_current = 1", userId);

  it('502: names exactly those who got none, in the order given; the accounts stay, the others are mailed (INVITE-14, MAIL-2, EVENT-8)', async () => {
    const emails = it1.fresh(40);
    const bad = emails.filter((_, place) => place % 4 === 1);
    const [drop, refuse, refuseData] = [bad.slice(0, 2), bad.slice(2, 6), bad.slice(6)];
    it1.mail.faults = {
      dropAtRecipient: isOneOf(drop.slice(0, 1)),
      dropAfterData: isOneOf(drop.slice(1)),
      refuse: (address) => (refuse.includes(address) ? 450 + ((100 * refuse.indexOf(address)) % 200) : null),
      refuseData: (address) => (refuseData.includes(address) ? 552 : null),
    };
    const since = await it1.mark();
    const group = await it1.newGroup();
    const { status, body } = await it1.invite(emails, [group.id]);
    const error = { code: 'UPSTREAM_BAD_ANSWER', message: text, requestId: expect.any(String) };
    expect([status, body]).toEqual([502, { message: text, error, failed: bad }]);
    expect((await since()).events.map(({ payload }) => payload.email)).toEqual(emails);
    const { body: members } = await it1.admin.get(`/userGroups/${group.id}/users?limit=100`);
    expect(members.users.map(({ email }: Json) => email).sort()).toEqual([...emails].sort());
    for (const email of emails) {
      const wanted = bad.includes(email) ? ['failed', 0] : ['pending', 1];
      expect([await statusOf(email), it1.mail.mailsTo(email).length]).toEqual(wanted);
    }
  });

  it('200: the same call again mails only those that failed, into the groups, without a second event (INVITE-14, INVITE-15)', async () => {
    const emails = it1.fresh(6);
    const bad = emails.slice(2, 4);
    it1.mail.faults = { refuse: (address) => (bad.includes(address) ? 451 : null) };
    expect((await it1.invite(emails)).body.failed).toEqual(bad);
    const records = async () => Promise.all(emails.map(async (email) => it1.idOf(email)));
    const ids = await records();
    it1.mail.faults = {};
    it1.mail.clear();
    const group = await it1.newGroup();
    const since = await it1.mark();
    expect((await it1.invite(emails, [group.id])).body).toEqual({ message: 'Invite sent successfully' });
    expect(new Set(it1.mail.asked)).toEqual(new Set(bad));
    for (const [place, email] of emails.entries()) {
      const isBad = bad.includes(email);
      expect(await it1.groupsOf(ids[place] ?? '')).toEqual(isBad ? ['everyone', group.name] : ['everyone']);
      const subjects = it1.mail.mailsTo(email).map(({ subject }) => subject);
      expect(subjects).toEqual(isBad ? ['You are invited to join Example Ltd'] : []);
    }
    const { events, audit } = await since();
    expect([events, await records()]).toEqual([[], ids]);
    const again = audit.filter(({ action }) => action === 'user.invited').map((row) => row.subject_id);
    expect(again).toEqual([ids[2], ids[3]]);
    expect((await it1.invite(emails)).status).toBe(409);
  });

  it('410: the link in a mail that arrived all the same, once the call was repeated; the new one works (INVITE-15, LINK-3)', async () => {
    const { email, userId, token } = await it1.invitee();
    lose(userId);
    expect([await statusOf(email), await it1.verdict(token)]).toEqual(['failed', 400]);
    expect((await it1.invite([email])).status).toBe(200);
    expect(await it1.verdict(token)).toBe(410);
    expect((await it1.use(tokenIn(it1.mailTo(email)))).status).toBe(200);
  });

  it('409: someone who came in by a mail that counted as failed is no invitee any more (INVITE-15)', async () => {
    const { email, userId, token } = await it1.invitee();
    lose(userId);
    expect((await it1.use(token)).status).toBe(200);
    expect([await statusOf(email), (await it1.invite([email])).status]).toEqual(['accepted', 409]);
  });

  it('200: someone restored whom the mail did not reach is told of re-joining when it is repeated (INVITE-10, INVITE-15)', async () => {
    const { email, userId } = await it1.invitee();
    await it1.admin.delete(`/users/${userId}`);
    it1.mail.faults = { refuseData: () => 554 };
    expect((await it1.invite([email])).body.failed).toEqual([email]);
    it1.mail.faults = {};
    expect((await it1.invite([email])).status).toBe(200);
    expect(it1.mailTo(email).subject).toBe('You are invited to re-join Example Ltd');
  });

  it('200: whom a resent mail or a link to copy has reached is an invitee no more; whom a resent one has not, is (INVITE-15, INVITE-18)', async () => {
    const [resent, shown, missed] = [await unreached(), await unreached(), await it1.invitee()];
    expect((await it1.resend(resent.userId)).status).toBe(200);
    expect((await it1.admin.post(`/users/${shown.userId}/invite-link`)).status).toBe(201);
    for (const { email } of [resent, shown]) expect((await it1.invite([email])).status).toBe(409);
    it1.mail.faults = { refuse: () => 550 };
    expect((await it1.resend(missed.userId)).body.failed).toEqual([missed.email]);
    it1.mail.faults = {};
    expect((await it1.invite([missed.email])).status).toBe(200);
  });

  it('502: the mail server is not there; everything else goes on, and nothing is left waiting (M2, INVITE-14, MAIL-7)', async () => {
    const emails = it1.fresh(30);
    await it1.mail.stop();
    const { status, body } = await it1.invite(emails);
    expect([status, body.failed]).toEqual([502, emails]);
    expect((await it1.admin.get('/org')).status).toBe(200);
    await it1.mail.listen();
    expect((await it1.invite(emails)).status).toBe(200);
    for (const email of emails) expect(it1.mail.mailsTo(email)).toHaveLength(1);
  });

  it('502: what the server said is for the log, and the link that it quotes is not in there (INVITE-14, MAIL-2)', async () => {
    const emails = it1.fresh(1);
    it1.mail.faults = { refuseData: () => 554 };
    const { body } = await it1.invite(emails);
    expect(JSON.stringify(body)).not.toContain('Not taken');
    const line = it1.app.logLines.findLast((logged) => logged.includes('1 of 1 mails'));
    expect(line).toContain('refused');
    expect(line).not.toContain('lkl_');
  });

  it('502: a mail without an outcome counts as on its way for 90 seconds, and then as failed (INVITE-15, INVITE-17, INVITE-24)', async () => {
    const [stuck = '', fine = ''] = it1.fresh(2);
    it1.mail.faults = { hang: (address) => address === stuck };
    const since = await it1.mark();
    const first = it1.invite([stuck, fine]);
    await it1.mail.until(() => it1.mail.hanging > 0 && it1.mail.mailsTo(fine).length > 0);
    expect([await statusOf(stuck), (await it1.invite([stuck])).status]).toEqual(['pending', 409]);
    it1.app.clock.advance(89_999);
    expect([await statusOf(stuck), (await it1.invite([stuck, fine])).status]).toEqual(['pending', 409]);
    it1.app.clock.advance(1);
    it1.mail.faults = {};
    expect([await statusOf(stuck), await statusOf(fine)]).toEqual(['failed', 'failed']);
    expect((await it1.invite([stuck])).status).toBe(200);
    expect(await statusOf(stuck)).toBe('pending');
    // The first call gives the mail up in real time, which no longer matters to the second one.
    const { status, body } = await first;
    expect([status, body.failed]).toEqual([502, [stuck]]);
    expect([await statusOf(stuck), await statusOf(fine)]).toEqual(['pending', 'pending']);
    expect((await since()).events).toHaveLength(2);
  });
});
