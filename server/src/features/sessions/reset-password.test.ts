import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MailServer } from '../../../test/support/mail-server.ts';
import {
  chosen,
  gone,
  invalid,
  mailedToken,
  opens,
  resetWith,
  signedOut,
  startWithMail,
} from '../../../test/support/recovery.ts';
import { type Client, type Json, password, type TestApp } from '../../../test/support/test-app.ts';
import { day, minute } from '../../base/clock.ts';

const path = '/userAccount/password/reset/token';
const email = 'grace@example.com';

describe('POST /userAccount/password/reset/token', () => {
  let mails: MailServer;
  let app: TestApp;
  let admin: Client;
  let member: Client;

  beforeEach(async () => {
    mails = await MailServer.start();
    app = await startWithMail(mails);
    admin = await app.setUp();
    member = await app.member(admin, email);
  });
  afterEach(async () => {
    await app.close();
    await mails.stop();
  });

  const mailed = (address = email) => mailedToken({ app, mails }, address);
  const record = async () => (await admin.get(`/users/${member.userId}`)).body;

  it('200: the new password opens, the old one no longer; the user is otherwise unchanged (PASSWORD-9)', async () => {
    const before = await record();
    const link = await mailed();
    app.clock.advance(1_000);
    expect(await resetWith(app, link)).toMatchObject({ status: 200, body: { data: 'password reset' } });
    expect(await record()).toEqual(before);
    expect([await opens(app, email, chosen), await opens(app, email, password)]).toEqual([true, false]);
    const row = await app.services.db.read
      .selectFrom('password_credentials')
      .where('user_id', '=', member.userId)
      .selectAll()
      .executeTakeFirstOrThrow();
    expect(row).toMatchObject({ updated_at: app.clock.now(), password_hash: expect.stringMatching(/^\$argon2id\$/) });
    const used = app.services.db.read.selectFrom('one_time_links').select(['end_reason', 'ended_at']);
    expect(await used.execute()).toEqual([{ end_reason: 'used', ended_at: app.clock.now() }]);
  });

  it('200: ends all sessions of the user, tokens go on, and so does everyone else (ERR-29, PASSWORD-9)', async () => {
    const [one, two] = [(await app.signInTokens(email)).body, (await app.signInTokens(email)).body];
    const token = await app.with(one.accessToken).token();
    const link = await mailed();
    expect((await member.get('/org')).status).toBe(200);
    expect((await resetWith(app, link)).status).toBe(200);
    for (const { accessToken, refreshToken } of [one, two]) {
      expect(await app.with(accessToken).get('/org')).toMatchObject(signedOut);
      expect(await app.with(refreshToken).post('/userAccount/refresh/token')).toMatchObject(signedOut);
    }
    expect(await member.get('/org')).toMatchObject(signedOut);
    expect((await token.get('/org')).status).toBe(200);
    expect((await admin.get('/org')).status).toBe(200);
    // The notice of the token may come later.
    await mails.until(() => mails.notices.some(({ text }) => text.includes('still work')), 'a notice of the reset');
  });

  it('200: with revokeTokens the tokens end too (SESSION-2)', async () => {
    const [token, others] = [await member.token(), await admin.token()];
    const before = (await app.audit()).length;
    const response = await app.with(await mailed()).post(path, { password: chosen, revokeTokens: true });
    expect(response).toMatchObject({ status: 200, body: { data: 'password reset' } });
    expect(await token.get('/org')).toMatchObject({ status: 401, body: { error: { code: 'TOKEN_REVOKED' } } });
    expect((await others.get('/org')).status).toBe(200);
    const rows = (await app.audit()).slice(before).filter(({ action }) => action !== 'password.reset-requested');
    expect(rows).toMatchObject([
      { action: 'token.revoked', subject_id: token.tokenId, actor_user_id: member.userId },
      { action: 'password.reset', details: { purpose: expect.any(String), revokedTokens: 1 } },
    ]);
    await mails.until(() => mails.notices.some(({ text }) => text.includes('were revoked')));
  });

  it('200: one row of the audit log, by and of the owner, says by which kind of link (AUDIT-1)', async () => {
    const link = await mailed();
    const before = (await app.audit()).length;
    await resetWith(app, link);
    await resetWith(app, link);
    expect((await app.audit()).slice(before)).toMatchObject([
      {
        action: 'password.reset',
        actor_user_id: member.userId,
        subject_id: member.userId,
        network: '127.0.0.1',
        details: { purpose: 'reset' },
      },
    ]);
  });

  it('200, then 410: a link works once, and opens nothing for anyone else (LINK-2, PASSWORD-12)', async () => {
    const [link, others] = [await mailed(), await mailed('ada@example.com')];
    expect((await resetWith(app, link)).status).toBe(200);
    expect(await resetWith(app, link, 'Another-Horse-9')).toMatchObject(gone);
    expect([await opens(app, email, chosen), await opens(app, 'ada@example.com', password)]).toEqual([true, true]);
    // What others have is not touched.
    expect((await resetWith(app, others, 'Another-Horse-9')).status).toBe(200);
    expect([await opens(app, email, chosen), await opens(app, 'ada@example.com', 'Another-Horse-9')]).toEqual([
      true,
      true,
    ]);
  });

  describe('410: a link that ended (ERR-21, LINK-3, N8)', () => {
    const ends: Readonly<Record<string, () => Promise<unknown>>> = {
      'the password was changed (LINK-3)': () =>
        member.post('/userAccount/password/reset', { currentPassword: password, newPassword: 'Another-Horse-9' }),
      'its owner changed the address (LINK-3, USER-43)': () =>
        member.patch(`/users/${member.userId}/email`, { email: 'moved@example.com' }),
      'an administrator changed the address (LINK-3, USER-43)': () =>
        admin.put(`/users/${member.userId}`, { email: 'moved@example.com' }),
      'a personal access token changed the address (LINK-3, USER-43)': async () =>
        (await member.token()).patch(`/users/${member.userId}/email`, { email: 'moved@example.com' }),
      'another link took its place (LINK-3)': () => mailed(),
      'an invitation set the password (LINK-3)': async () => {
        const { db } = app.services;
        const hers = { user_id: member.userId };
        // As if she had never been in.
        await db.transaction(async (tx) => {
          await tx.deleteFrom('password_credentials').where('user_id', '=', hers.user_id).execute();
          await tx
            .updateTable('users')
            .set({ has_logged_in: 0, signed_in_at: null })
            .where('id', '=', hers.user_id)
            .execute();
        });
        const { body } = await admin.post(`/users/${member.userId}/invite-link`);
        return resetWith(app, body.link.split('#token=')[1], 'Another-Horse-9');
      },
    };
    it.each(Object.entries(ends))('%s', async (_, end) => {
      const link = await mailed();
      const done = (await end()) as Json;
      expect([200, undefined]).toContain(done.status);
      expect(await resetWith(app, link)).toMatchObject(gone);
      expect(await opens(app, email, chosen)).toBe(false);
    });

    it('200: what leaves the address as it is ends nothing (USER-43)', async () => {
      const link = await mailed();
      await admin.put(`/users/${member.userId}`, { email: 'GRACE@example.com', fullName: 'Grace' });
      expect((await resetWith(app, link)).status).toBe(200);
    });

    it('exactly 20 minutes after it was made, for 30 days; then 401 (ERR-21, PASSWORD-8, PASSWORD-12)', async () => {
      const link = await mailed();
      const endMs = app.clock.now() + 20 * minute;
      app.clock.set(endMs);
      expect(await resetWith(app, link)).toMatchObject(gone);
      app.clock.set(endMs + 30 * day - 1);
      expect(await resetWith(app, link)).toMatchObject(gone);
      app.clock.set(endMs + 30 * day);
      expect(await resetWith(app, link)).toMatchObject(invalid);
      app.clock.set(endMs - 1);
      expect((await resetWith(app, link)).status).toBe(200);
    });

    it('30 days after it was used, not after its time would have been over; then 401 (ERR-21, PASSWORD-12)', async () => {
      const link = await mailed();
      const usedMs = app.clock.now();
      await resetWith(app, link);
      app.clock.set(usedMs + 30 * day - 1);
      expect(await resetWith(app, link)).toMatchObject(gone);
      app.clock.set(usedMs + 30 * day);
      expect(await resetWith(app, link)).toMatchObject(invalid);
    });

    it('401 while its owner is deleted; once restored, 410 for 30 days, then 401 (LINK-3, PASSWORD-12)', async () => {
      const link = await mailed();
      await admin.delete(`/users/${member.userId}`);
      const deletedMs = app.clock.now();
      const { status, body, headers } = await resetWith(app, link);
      expect([status, body.error.code]).toEqual([401, 'TOKEN_INVALID']);
      expect(headers.get('www-authenticate')).toBe('Bearer realm="latchkey", error="invalid_token"');
      await admin.post(`/users/${member.userId}/restore`);
      expect(await resetWith(app, link)).toMatchObject(gone);
      app.clock.set(deletedMs + 30 * day - 1);
      expect(await resetWith(app, link)).toMatchObject(gone);
      app.clock.set(deletedMs + 30 * day);
      expect(await resetWith(app, link)).toMatchObject(invalid);
      expect(await opens(app, email, chosen)).toBe(false);
    });

    it('401: its organization is deleted (ORG-26)', async () => {
      const link = await mailed();
      await admin.delete('/org');
      expect(await resetWith(app, link)).toMatchObject(invalid);
    });
  });

  it('401: nothing, an invented link, or one that was altered (LINK-1)', async () => {
    const link = await mailed();
    const nothing = await app.anonymous.post(path, { password: chosen });
    expect(nothing).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } });
    const other = link.endsWith('A') ? 'B' : 'A';
    const altered = [
      `lkl_${'A'.repeat(43)}`,
      link.slice(0, -1) + other,
      link.slice('lkl_'.length),
      link.toUpperCase(),
      `${link}=`,
      `lkpat_${link}`,
      'lkl_',
    ];
    for (const value of altered) expect(await resetWith(app, value), value).toMatchObject(invalid);
    expect((await resetWith(app, link)).status).toBe(200);
  });

  it('401, 410: a link that does not work is told before the body is looked at (HTTP-2)', async () => {
    const used = await mailed();
    await resetWith(app, used);
    const bodies = [{ raw: '{"password"' }, { raw: 'x', headers: { 'content-type': 'text/plain' } }, { body: {} }];
    for (const options of bodies) {
      expect(await app.with(used).call('POST', path, options)).toMatchObject(gone);
      expect(await app.with(`lkl_${'A'.repeat(43)}`).call('POST', path, options)).toMatchObject(invalid);
      expect((await app.anonymous.call('POST', path, options)).status).toBe(401);
    }
  });

  it('400, 415: with a link that works, for a body that does not; the link still works (HTTP-14, PASSWORD-11)', async () => {
    const link = await mailed();
    const bodies = [{}, { password: null }, { password: [chosen] }, { password: 7 }, { password: '' }, []];
    for (const body of bodies) expect((await app.with(link).post(path, body)).status, JSON.stringify(body)).toBe(400);
    const typed = { raw: '{}', headers: { 'content-type': 'text/plain' } };
    expect((await app.with(link).call('POST', path, typed)).status).toBe(415);
    expect((await resetWith(app, link)).status).toBe(200);
  });

  it('200, 405: looking at a link in any way uses nothing up (PASSWORD-11, N8)', async () => {
    const link = await mailed();
    for (const method of ['GET', 'HEAD', 'OPTIONS']) {
      await app.anonymous.call(method, '//reset-password');
      await app.anonymous.call(method, `//reset-password?token=${link}`);
      const { status } = await app.with(link).call(method, path);
      expect([204, 405]).toContain(status);
    }
    for (const method of ['PUT', 'PATCH', 'DELETE']) {
      expect((await app.with(link).call(method, path, { body: { password: chosen } })).status).toBe(405);
    }
    expect(await opens(app, email, password)).toBe(true);
    expect((await resetWith(app, link)).status).toBe(200);
  });
});
