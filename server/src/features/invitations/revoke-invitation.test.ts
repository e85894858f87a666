import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Inviting } from '../../../test/support/inviting.ts';
import { tokenIn } from '../../../test/support/mail-server.ts';
import type { Client } from '../../../test/support/test-app.ts';

describe('DELETE /users/:id/invitation', () => {
  let it1: Inviting;
  let member: Client;

  beforeAll(async () => {
    it1 = await Inviting.start();
    member = await it1.app.member(it1.admin, 'grace@example.com');
  });
  afterAll(() => it1.close());

  const revoke = (id: string, client: Client = it1.admin) => client.delete(`/users/${id}/invitation`);
  const code = async (id: string, client?: Client) => {
    const { status, body } = await revoke(id, client);
    return [status, body.error?.code];
  };

  it('200: the account is deleted as by DELETE, told of and recorded, and the link is dead (INVITE-25, USER-34, USER-35, LINK-3)', async () => {
    const group = await it1.newGroup();
    const [email = ''] = it1.fresh(1);
    await it1.invite([email], [group.id]);
    const userId = await it1.idOf(email);
    const token = tokenIn(it1.mailTo(email));
    const since = await it1.mark();
    const { status, body } = await revoke(userId.toUpperCase());
    expect([status, body]).toEqual([200, { message: 'Invitation revoked successfully' }]);
    expect((await it1.admin.get(`/users/${userId}`)).status).toBe(404);
    expect((await it1.app.service().get(`/users/internal/${userId}`)).body.isDeleted).toBe(true);
    const rows = it1.app.services.db.read.selectFrom('group_members').where('user_id', '=', userId).selectAll();
    expect([await rows.execute(), await it1.verdict(token)]).toEqual([[], 401]);
    const { events, audit } = await since();
    expect(events).toMatchObject([{ event_type: 'userDeleted', payload: { userId, email } }]);
    const row = { subject_id: userId, actor_user_id: it1.admin.userId, actor_token_id: null };
    expect(audit).toMatchObject([
      { ...row, action: 'invitation.revoked' },
      { ...row, action: 'user.deleted' },
    ]);
    expect([events.length, audit.length, await it1.listed(email)]).toEqual([1, 2, undefined]);
    expect([await code(userId), (await it1.resend(userId)).status]).toEqual([[404, 'NOT_FOUND'], 404]);
  });

  it('200: anyone who was revoked can be invited again, as the same person, and the earlier link stays dead (INVITE-7, INVITE-25)', async () => {
    const { email, userId, token } = await it1.invitee();
    await revoke(userId);
    expect((await it1.invite([email])).status).toBe(200);
    expect([await it1.idOf(email), it1.mailTo(email).subject]).toEqual([
      userId,
      'You are invited to re-join Example Ltd',
    ]);
    expect([await it1.verdict(token), await it1.verdict(tokenIn(it1.mailTo(email)))]).toEqual([410, 400]);
    expect((await revoke(userId)).status).toBe(200);
  });

  it('200: one that failed, one that is expired, and one that was shown as a link (INVITE-25)', async () => {
    const [failed = ''] = it1.fresh(1);
    it1.mail.faults = { refuse: () => 550 };
    await it1.invite([failed]);
    it1.mail.faults = {};
    const { body: shown } = await it1.admin.post('/users', { fullName: 'Shown', email: 'shown@example.com' });
    await it1.admin.post(`/users/${shown._id}/invite-link`);
    for (const id of [await it1.idOf(failed), shown._id]) expect((await revoke(id)).status).toBe(200);
    const { userId, token } = await it1.invitee();
    it1.write('UPDATE one_time_links SET expires_at = ? WHERE user_id = ?', it1.app.clock.now(), userId);
    expect([await it1.verdict(token), (await revoke(userId)).status]).toEqual([410, 200]);
  });

  it('200: with a token of user:delete; 403 with all others (INVITE-25, SCOPE-14)', async () => {
    const { userId } = await it1.invitee();
    const scopes = ['user:invite', 'user:write', 'user:read', 'org:admin', 'usergroup:write'];
    expect(await code(userId, await it1.admin.token({ scopes }))).toEqual([403, 'INSUFFICIENT_SCOPE']);
    const token = await it1.admin.token({ scopes: ['user:delete'] });
    expect((await revoke(userId, token)).status).toBe(200);
    expect((await it1.app.audit()).at(-1)).toMatchObject({ action: 'user.deleted', actor_token_id: token.tokenId });
  });

  it('400: one that was accepted by setting a password, by signing in, or by hand; the person stays (INVITE-25)', async () => {
    const [set, signedIn, byHand] = [await it1.settled(), await it1.settled(), await it1.invitee()];
    await it1.app.signInTokens(signedIn.email);
    await it1.admin.put(`/users/${byHand.userId}`, { email: byHand.email, hasLoggedIn: true });
    for (const { userId } of [set, signedIn, byHand]) {
      const { status, body } = await revoke(userId);
      expect([status, body.message]).toEqual([400, 'User has already accepted the invite']);
      expect((await it1.admin.get(`/users/${userId}`)).status).toBe(200);
    }
    expect((await it1.app.signInTokens(set.email)).status).toBe(200);
  });

  it('404: anyone who was never invited, in this life of the account; no one; 400: no id (INVITE-25)', async () => {
    const { body: created } = await it1.admin.post('/users', { fullName: 'New', email: 'created@example.com' });
    const restored = await it1.invitee();
    await it1.admin.delete(`/users/${restored.userId}`);
    await it1.admin.post(`/users/${restored.userId}/restore`);
    for (const id of [created._id, restored.userId, member.userId, it1.admin.userId, 'f'.repeat(24)]) {
      expect(await code(id)).toEqual([404, 'NOT_FOUND']);
    }
    expect(await code('not-an-id')).toEqual([400, 'VALIDATION_ERROR']);
  });

  it('409: someone who was invited to administrate has to leave the admin group first (INVITE-25, USER-36)', async () => {
    const { userId, token } = await it1.invitee();
    await it1.app.promote(userId);
    expect(await code(userId)).toEqual([409, 'CONFLICT']);
    expect(await it1.verdict(token)).toBe(400);
    await it1.app.demote(userId);
    expect((await revoke(userId)).status).toBe(200);
  });

  it('403: a member learns nothing (A1, HTTP-2)', async () => {
    for (const id of [(await it1.invitee()).userId, member.userId, 'f'.repeat(24), 'not-an-id']) {
      expect(await code(id, member)).toEqual([403, 'ADMIN_REQUIRED']);
    }
  });
});
