import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { outcomeOf } from '../../../test/support/browser.ts';
import { tokenIn } from '../../../test/support/mail-server.ts';
import { allowOidc, OidcServer, proveOidc, RunningClock, showTicket } from '../../../test/support/oidc-server.ts';
import { storedRows } from '../../../test/support/second-connection.ts';
import { SignInDesk } from '../../../test/support/sign-in-desk.ts';
import { type Client, password, type TestApp } from '../../../test/support/test-app.ts';

describe('DELETE /users/:id/identities', () => {
  let provider: OidcServer;
  let desk: SignInDesk;
  let app: TestApp;
  let admin: Client;
  let count = 0;

  beforeAll(async () => {
    provider = await OidcServer.start();
    desk = await SignInDesk.start(provider.environment, new RunningClock());
    ({ app, admin } = desk);
    await allowOidc(admin);
  });
  afterAll(async () => {
    await desk.close();
    await provider.stop();
  });

  const walk = async (sub: string, email: string) =>
    outcomeOf(await provider.walk(app, { sub, email, email_verified: true }));
  const unlink = (userId: string, by = admin) => by.delete(`/users/${userId}/identities`);
  /** A user who signed in by the provider. */
  async function linked() {
    count += 1;
    const email = `linked-${count}@example.com`;
    const { body } = await showTicket(app, await walk(email, email));
    const client = app.with(body.accessToken);
    return { client, email, userId: String((await app.events()).at(-1).payload.userId) };
  }

  it('200: another identity with the address of the account is linked from then on (AUTH-55, FIT-8)', async () => {
    const { email, userId } = await linked();
    expect(await walk('new-subject', email)).toEqual({ error: 'no_account' });
    expect((await unlink(userId)).body).toEqual({ unlinked: 1, ended: 1 });
    const events = await app.events();
    expect(await walk('new-subject', email)).toMatchObject({ email });
    expect(await app.events()).toEqual(events);
    expect(await walk(email, email)).toEqual({ error: 'no_account' });
  });

  it('200: sessions and tickets end, tokens stay, and there are an audit row and a notice (AUDIT-1, FIT-8)', async () => {
    const { client, email, userId } = await linked();
    const ticket = await walk(email, email);
    const token = await client.token({ scopes: ['user:read'] });
    desk.mail.clear();
    expect((await unlink(userId)).status).toBe(200);
    expect((await app.audit()).at(-1)).toMatchObject({
      action: 'user.unlinked',
      actor_user_id: admin.userId,
      subject_id: userId,
      details: { issuers: [provider.issuer], ended: 1 },
    });
    expect((await client.get('/org')).status).toBe(401);
    expect((await showTicket(app, ticket)).status).toBe(401);
    expect((await token.get(`/users/${userId}`)).status).toBe(200);
    expect((await desk.mail.mailTo(email)).text).toContain('Your account was unlinked from single sign-on');
    expect((await walk(email, email))['email']).toBe(email);
  });

  it('200: without a link nothing happens (FIT-8)', async () => {
    const member = await app.member(admin, 'unlinked@example.com');
    const rows = storedRows(app);
    expect(await unlink(member.userId)).toMatchObject({ status: 200, body: { unlinked: 0, ended: 0 } });
    expect(storedRows(app)).toEqual(rows);
    expect((await member.get('/org')).status).toBe(200);
  });

  it('a leaver who was unlinked before gets no new account by another address (AUTH-72, FIT-8)', async () => {
    const { email, userId } = await linked();
    await unlink(userId);
    expect((await admin.delete(`/users/${userId}`)).status).toBe(200);
    expect(await walk(email, `again-${email}`)).toEqual({ error: 'no_account' });
    expect((await unlink(userId)).status).toBe(404);
  });

  it('nor by an identity that was unlinked before another one ended what was set earlier (AUTH-72, ADDRESS-14)', async () => {
    const email = 'before@example.com';
    const member = await app.member(admin, email);
    expect(await walk('first', email)).toMatchObject({ email });
    await unlink(member.userId);
    const again = await app.signIn(email);
    expect((await again.patch(`/users/${member.userId}/email`, { email: 'after@example.com' })).status).toBe(200);
    const link = app.with(tokenIn(await desk.mail.mailTo('after@example.com')));
    const proof = { currentPassword: password };
    expect((await link.post('/userAccount/email/confirm/token', proof)).status).toBe(200);
    expect(await walk('second', 'after@example.com')).toMatchObject({ email: 'after@example.com' });
    expect((await admin.delete(`/users/${member.userId}`)).status).toBe(200);
    for (const subject of ['first', 'second']) {
      expect([subject, await walk(subject, `${subject}@example.com`)]).toEqual([subject, { error: 'no_account' }]);
    }
  });

  it('an unlinked identity of an active user is free for another account (FIT-8)', async () => {
    const { email, userId } = await linked();
    await unlink(userId);
    expect(await walk(email, `other-${email}`)).toMatchObject({ email: `other-${email}` });
    expect(await walk('successor', email)).toMatchObject({ email });
  });

  it('403: for the user, another member, and a token of an administrator; 404 for an unknown user (FIT-8)', async () => {
    const { client, userId } = await linked();
    const other = await app.member(admin, 'other-member@example.com');
    for (const caller of [client, other, await admin.token()]) expect((await unlink(userId, caller)).status).toBe(403);
    expect((await unlink('f'.repeat(24))).status).toBe(404);
    expect((await client.get('/org')).status).toBe(200);
  });

  it('409: for the only administrator who signed in by it, while a step depends on it (FIT-7, FIT-8)', async () => {
    await allowOidc(admin);
    await proveOidc(provider, app);
    await allowOidc(admin, [['oidc']]);
    expect(await unlink(admin.userId)).toMatchObject({ status: 409, body: { error: { code: 'CONFLICT' } } });
    const { userId } = await linked();
    await app.promote(userId);
    expect((await unlink(admin.userId)).status).toBe(200);
  });
});
