import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MailServer } from '../../../test/support/mail-server.ts';
import { signedOut, startWithMail } from '../../../test/support/recovery.ts';
import type { Client, Json, TestApp } from '../../../test/support/test-app.ts';
import { day } from '../../base/clock.ts';

const email = 'grace@example.com';
const notFound = { status: 404, body: { error: { code: 'NOT_FOUND' } } };
const adminOnly = { status: 403, body: { error: { code: 'ADMIN_REQUIRED' } } };

describe('the sessions of a user, for administrators', () => {
  let mails: MailServer;
  let app: TestApp;
  let admin: Client;
  let member: Client;
  let path = '';
  beforeAll(async () => {
    mails = await MailServer.start();
    app = await startWithMail(mails);
    admin = await app.setUp();
    member = await app.member(admin, email);
    path = `/users/${member.userId}/sessions`;
  });
  afterAll(async () => {
    await app.close();
    await mails.stop();
  });

  const signIn = async (): Promise<Json> => (await app.signInTokens(email)).body;
  const listed = async (): Promise<Json[]> => (await admin.get(path)).body.sessions;

  it('200: the same list as the user has, by session and by token (SESSION-8)', async () => {
    const own = await app.with((await signIn()).accessToken).get('/userAccount/sessions');
    const withoutCurrent = own.body.sessions.map((session: Json) => ({ ...session, isCurrent: false }));
    const token = await admin.token({ scopes: ['org:admin'] });
    for (const client of [admin, token]) {
      expect(await client.get(path)).toMatchObject({ status: 200, body: { sessions: withoutCurrent } });
    }
    const mine = (await admin.get(`/users/${admin.userId}/sessions`)).body.sessions;
    expect(mine.filter(({ isCurrent }: Json) => isCurrent)).toHaveLength(1);
  });

  it('200: one session ends, and no other (SESSION-8)', async () => {
    const [one, other] = [await signIn(), await signIn()];
    const { sessions } = (await app.with(one.accessToken).get('/userAccount/sessions')).body;
    const { id } = sessions.find(({ isCurrent }: Json) => isCurrent);
    const rows = (await app.audit()).length;
    expect(await admin.delete(`${path}/${id}`)).toMatchObject({ status: 200, body: { message: 'Session ended' } });
    expect(await app.with(one.accessToken).get('/org')).toMatchObject(signedOut);
    expect(await app.with(one.refreshToken).post('/userAccount/refresh/token')).toMatchObject(signedOut);
    expect((await app.with(other.accessToken).get('/org')).status).toBe(200);
    expect((await app.audit()).slice(rows)).toMatchObject([
      {
        action: 'session.ended',
        actor_user_id: admin.userId,
        subject_id: id,
        subject_owner_id: member.userId,
        details: { reason: 'administrator' },
      },
    ]);
    expect((await mails.noticeTo(email)).text.replaceAll('\n', ' ')).toContain('ended one of your sessions');
    // Once more there is nothing to end, nor by the id of another user.
    for (const again of [`${path}/${id}`, `/users/${admin.userId}/sessions/${(await listed())[0]?.id}`]) {
      expect(await admin.delete(again)).toMatchObject(notFound);
    }
    expect(await listed()).not.toHaveLength(0);
  });

  it('200: all end, as many as were open; tokens and other people go on (SESSION-8, SESSION-11)', async () => {
    const past = await signIn();
    app.clock.advance(30 * day);
    admin = await app.signIn('ada@example.com');
    const [one, two] = [await signIn(), await signIn()];
    const token = await app.with(one.accessToken).token({ scopes: ['org:read'] });
    const open = await listed();
    mails.clear();
    expect(await admin.delete(path)).toMatchObject({ status: 200, body: { ended: open.length } });
    for (const { accessToken, refreshToken } of [past, one, two]) {
      expect(await app.with(accessToken).get('/org')).toMatchObject(signedOut);
      expect(await app.with(refreshToken).post('/userAccount/refresh/token')).toMatchObject(signedOut);
    }
    for (const client of [token, admin]) expect((await client.get('/org')).status).toBe(200);
    expect((await mails.noticeTo(email)).subject).toBe('An administrator of Example Ltd ended your sessions');
    expect([await listed(), (await admin.delete(path)).body]).toEqual([[], { ended: 0 }]);
    expect(await admin.delete(`/users/${admin.userId}/sessions`)).toMatchObject({ status: 200 });
    expect(await admin.get('/org')).toMatchObject(signedOut);
    admin = await app.signIn('ada@example.com');
  });

  it('403 and 404: members, narrower tokens; anyone who is unknown or deleted (SESSION-8)', async () => {
    const session = app.with((await signIn()).accessToken);
    const [{ id }] = (await listed()) as [Json];
    const narrow = await admin.token({ scopes: ['user:write', 'token:admin'] });
    const gone = await app.member(admin, 'gone@example.com');
    await app.deleteUser(gone.userId);
    const ways: [string, string][] = [
      ['GET', path],
      ['DELETE', path],
      ['DELETE', `${path}/${id}`],
    ];
    for (const [method, address] of ways) {
      expect(await session.call(method, address)).toMatchObject(adminOnly);
      expect(await narrow.call(method, address)).toMatchObject({ status: 403 });
      for (const userId of [gone.userId, '0'.repeat(24)]) {
        expect(await admin.call(method, address.replace(member.userId, userId))).toMatchObject(notFound);
      }
    }
    expect((await session.get('/org')).status).toBe(200);
  });
});
