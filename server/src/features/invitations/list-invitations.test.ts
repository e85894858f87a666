import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Inviting } from '../../../test/support/inviting.ts';
import { tokenIn } from '../../../test/support/mail-server.ts';
import type { Client, Json } from '../../../test/support/test-app.ts';

const hour = 3_600_000;

describe('GET /users/invitations', () => {
  let it1: Inviting;
  let member: Client;

  beforeAll(async () => {
    it1 = await Inviting.start();
    member = await it1.app.member(it1.admin, 'grace@example.com');
  });
  afterAll(() => it1.close());

  const path = '/users/invitations';
  const emailsOf = (invitations: readonly Json[]) => invitations.map(({ email }) => email);
  const at = (ms: number) => new Date(ms).toISOString();

  it('200: an empty list while no one was invited; who was only created is not in it (INVITE-24)', async () => {
    const { status, body } = await it1.admin.get(path);
    const pagination = { page: 1, limit: 25, totalCount: 0, totalPages: 0, hasNextPage: false, hasPrevPage: false };
    expect([status, body]).toEqual([200, { invitations: [], pagination }]);
  });

  it('200: says of each who, by whom, how, when and what became of it, and never the link (INVITE-23, INVITE-24)', async () => {
    const { email, userId, token } = await it1.invitee();
    const invitedMs = it1.app.clock.now();
    const { body: shown } = await it1.admin.post('/users', { fullName: 'Sho Wn', email: 'shown@example.com' });
    await it1.admin.post(`/users/${shown._id}/invite-link`);
    const common = {
      status: 'pending',
      isReturning: false,
      invitedBy: it1.admin.userId,
      invitedAt: at(invitedMs),
      expiresAt: at(invitedMs + 48 * hour),
      acceptedAt: null,
    };
    const mailed = { userId, email, fullName: email.split('@')[0], delivery: 'mail', ...common };
    expect(await it1.list()).toEqual([
      { userId: shown._id, email: 'shown@example.com', fullName: 'Sho Wn', delivery: 'link', ...common },
      mailed,
    ]);
    it1.app.clock.advance(hour);
    await it1.use(token);
    expect(await it1.listed(email)).toEqual({ ...mailed, status: 'accepted' });
    it1.app.clock.advance(hour);
    await it1.app.signInTokens(email);
    expect(await it1.listed(email)).toEqual({ ...mailed, status: 'accepted', acceptedAt: at(invitedMs + 2 * hour) });
    it1.app.clock.advance(60 * hour);
    await it1.app.signInTokens(email);
    it1.admin = await it1.app.signIn('ada@example.com');
    member = await it1.app.signIn('grace@example.com');
    expect(await it1.listed(email)).toEqual({ ...mailed, status: 'accepted', acceptedAt: at(invitedMs + 2 * hour) });
    expect((await it1.listed('shown@example.com')).status).toBe('expired');
  });

  it('200: pending until 48 hours are over, then expired, and pending again once it is resent (INVITE-24)', async () => {
    const inviting = await Inviting.start();
    const { email, userId } = await inviting.invitee();
    const statusAfter = async (ms: number) => {
      inviting.app.clock.advance(ms);
      inviting.admin = await inviting.app.signIn('ada@example.com');
      return (await inviting.listed(email)).status;
    };
    expect(await statusAfter(48 * hour - 1)).toBe('pending');
    expect(await statusAfter(1)).toBe('expired');
    await inviting.resend(userId);
    expect([await statusAfter(0), await statusAfter(-72 * hour), await statusAfter(400 * 24 * hour)]).toEqual([
      'pending',
      'pending',
      'expired',
    ]);
    await inviting.close();
  });

  it('200: expired once the e-mail has changed; accepted where a password was set in whatever way since (INVITE-24, LINK-3)', async () => {
    const { email, userId } = await it1.invitee();
    const moved = `moved-${email}`;
    await it1.admin.patch(`/users/${userId}/email`, { email: moved });
    expect((await it1.listed(moved)).status).toBe('expired');
    it1.mail.clear();
    await it1.app.anonymous.post('/userAccount/password/forgot', { email: moved });
    await it1.mail.until(() => it1.mail.mailsTo(moved).some(({ subject }) => subject.startsWith('Reset')));
    expect((await it1.use(tokenIn(it1.mailTo(moved)))).status).toBe(200);
    expect((await it1.listed(moved)).status).toBe('accepted');
  });

  it('200: accepted by a reset link, and still so when the invitation is resent (INVITE-24, PASSWORD-8)', async () => {
    const { email, userId } = await it1.invitee();
    it1.mail.clear();
    await it1.app.anonymous.post('/userAccount/password/forgot', { email });
    expect((await it1.use(tokenIn(await it1.mail.mailTo(email)))).status).toBe(200);
    expect(await it1.listed(email)).toMatchObject({ status: 'accepted', acceptedAt: null });
    expect((await it1.resend(userId)).status).toBe(200);
    expect((await it1.listed(email)).status).toBe('accepted');
  });

  it('200: a deleted person is not in it, and a restored one not until invited; then as returning (INVITE-24)', async () => {
    const { email, userId } = await it1.invitee();
    await it1.admin.delete(`/users/${userId}`);
    expect(await it1.listed(email)).toBeUndefined();
    await it1.admin.post(`/users/${userId}/restore`);
    expect(await it1.listed(email)).toBeUndefined();
    await it1.admin.delete(`/users/${userId}`);
    await it1.invite([email]);
    expect(await it1.listed(email)).toMatchObject({ userId, status: 'pending', isReturning: true });
  });

  it('200: one entry a person, by anyone who invited last, newest first (INVITE-24)', async () => {
    const [first, second] = [await it1.invitee(), await it1.invitee()];
    const other = await it1.app.member(it1.admin, 'other@example.com');
    await it1.app.promote(other.userId);
    await it1.resend(first.userId, other);
    const [top, next] = await it1.list();
    expect(emailsOf([top, next])).toEqual([first.email, second.email]);
    expect([top.invitedBy, next.invitedBy]).toEqual([other.userId, it1.admin.userId]);
    expect(new Set(emailsOf(await it1.list('?limit=100'))).size).toBe((await it1.list('?limit=100')).length);
  });

  it('200: pages that hold everyone once, with counts that agree with every status (INVITE-24, USER-14)', async () => {
    const emails = it1.fresh(12);
    it1.mail.faults = { refuse: (address) => (emails.indexOf(address) % 4 === 0 ? 550 : null) };
    await it1.invite(emails);
    it1.mail.faults = {};
    for (const email of emails.slice(1, 3)) await it1.use(tokenIn(it1.mailTo(email)));
    const all = await it1.list('?limit=100');
    const pages: Json[] = [];
    for (let page = 1; page <= Math.ceil(all.length / 5); page += 1) {
      const { body } = await it1.admin.get(`${path}?page=${page}&limit=5`);
      expect(body.pagination).toMatchObject({ page, limit: 5, totalCount: all.length });
      pages.push(...body.invitations);
    }
    expect(pages).toEqual(all);
    for (const status of ['pending', 'accepted', 'expired', 'failed']) {
      const { body } = await it1.admin.get(`${path}?limit=100&status=${status}`);
      const wanted = all.filter((one) => one.status === status);
      expect([body.invitations, body.pagination.totalCount]).toEqual([wanted, wanted.length]);
      expect(wanted.length).toBeGreaterThan(0);
    }
    expect((await it1.admin.get(`${path}?page=1000`)).body.invitations).toEqual([]);
  });

  it('200: a search in name and address, in any case, literally, together with a status (INVITE-24, USER-16)', async () => {
    const { email, userId } = await it1.invitee();
    await it1.admin.patch(`/users/${userId}/fullname`, { fullName: 'Ünïque 100%_Näme' });
    for (const search of ['ÜNÏQUE', '100%_n', email.toUpperCase()]) {
      expect(emailsOf(await it1.list(`?search=${encodeURIComponent(search)}`))).toContain(email);
    }
    expect(await it1.list(`?search=${encodeURIComponent('1%0_')}`)).toEqual([]);
    const { body } = await it1.admin.get(`${path}?status=pending&search=${encodeURIComponent('ünïque')}`);
    expect([emailsOf(body.invitations), body.pagination.totalCount]).toEqual([[email], 1]);
    expect(await it1.list(`?status=failed&search=${encodeURIComponent('ünïque')}`)).toEqual([]);
  });

  it.each(['status=revoked', 'status=', 'status=Pending', 'page=0', 'page=x', 'limit=101', 'limit=0'])(
    '400: %s (INVITE-24, USER-15)',
    async (query) => {
      expect((await it1.admin.get(`${path}?${query}`)).status).toBe(400);
    },
  );

  it('200: for a token with user:read; 403 with all others, and for members whatever they ask (INVITE-24, SCOPE-11, A1)', async () => {
    expect((await (await it1.admin.token({ scopes: ['user:read'] })).get(path)).status).toBe(200);
    const other = await it1.admin.token({ scopes: ['user:invite', 'user:write', 'org:admin'] });
    expect((await other.get(path)).body.error.code).toBe('INSUFFICIENT_SCOPE');
    for (const query of ['', '?status=bad']) {
      const { status, body } = await member.get(path + query);
      expect([status, body.error.code]).toEqual([403, 'ADMIN_REQUIRED']);
    }
  });
});
