import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tokenIn } from '../../../test/support/mail-server.ts';
import { SignInDesk } from '../../../test/support/sign-in-desk.ts';
import { type Client, password, TestApp, type TestResponse } from '../../../test/support/test-app.ts';

const path = '/userAccount/email/confirm';
const confirmed = { status: 200, body: { message: 'E-mail address confirmed' } };
const isSent = {
  status: 200,
  body: { message: 'We send a mail with a link to confirm the address. If none arrives within ten minutes, ask again' },
};

describe('POST /userAccount/email/confirm', () => {
  let desk: SignInDesk;
  let users = 0;
  beforeAll(async () => {
    desk = await SignInDesk.start({ RATE_LIMIT: 'on' });
  });
  afterAll(() => desk.close());

  /** Creates a user whose address a token changed from `before` to `after`. */
  async function moved(): Promise<{ before: string; after: string; client: Client; token: Client }> {
    users += 1;
    const [before, after] = [`before-${users}@example.com`, `after-${users}@example.com`];
    const client = await desk.app.member(desk.admin, before);
    const token = await client.token();
    expect((await token.patch(`/users/${client.userId}/email`, { email: after })).status).toBe(200);
    await desk.settled();
    return { before, after, client, token };
  }

  /** Asks for a link to set a password; answers who got it. */
  async function recover(email: string): Promise<string | null> {
    await desk.settled();
    desk.mail.clear();
    await desk.app.anonymous.post('/userAccount/password/forgot', { email });
    await desk.settled();
    return desk.mail.mails[0]?.to.join() ?? null;
  }
  const verifiedAt = async ({ userId }: Client) => (await desk.admin.get(`/users/${userId}`)).body.emailVerifiedAt;

  it('200: an administrator verifies the address of another user: links and codes of the earlier one end (ADDRESS-8, AUTH-50)', async () => {
    const { before, after, client } = await moved();
    for (const named of [before, after]) expect(await recover(named)).toBe(before);
    const reset = tokenIn(desk.mail.mails[0] ?? { text: '' });
    const code = await desk.codeFor(after, before);
    const rows = (await desk.app.audit()).length;
    expect(await verifiedAt(client)).toBeNull();
    expect(await desk.admin.post(path, { userId: client.userId.toUpperCase() })).toMatchObject(confirmed);
    expect(await verifiedAt(client)).toBe(new Date(desk.app.clock.now()).toISOString());
    expect((await desk.app.audit()).slice(rows)).toMatchObject([
      {
        action: 'user.email-confirmed',
        actor_user_id: desk.admin.userId,
        subject_id: client.userId,
        details: { email: after, how: 'administrator' },
        changes: { recoveryEmail: { before, after: null } },
      },
    ]);
    const late = desk.app.with(reset).post('/userAccount/password/reset/token', { password: 'Another-Horse-8' });
    expect(await late).toMatchObject({ status: 410, body: { error: { code: 'GONE' } } });
    expect((await desk.signIn(after, 'otp', code)).status).toBe(401);
    expect((await client.get('/org')).status).toBe(200);
    expect(await recover(before)).toBeNull();
    expect(await recover(after)).toBe(after);
  });

  it('200: for oneself a new link goes to the new address, and verifies nothing by itself (ADDRESS-8)', async () => {
    const { before, after, client } = await moved();
    const [first] = desk.mail.mailsTo(after);
    desk.mail.clear();
    expect(await client.post(path)).toMatchObject(isSent);
    const letter = await desk.mail.mailTo(after);
    expect(letter.text).toContain('will ask for the password');
    expect(await verifiedAt(client)).toBeNull();
    expect(await recover(after)).toBe(before);
    expect((await desk.app.with(tokenIn(first ?? letter)).post(`${path}/token`)).status).toBe(410);
    expect((await desk.app.with(tokenIn(letter)).post(`${path}/token`, { currentPassword: password })).status).toBe(
      200,
    );
    expect(await client.post(path)).toMatchObject(confirmed);
  });

  it('429: more than five links an hour, so that no one else’s mailbox is filled (ADDRESS-8)', async () => {
    const { after, client } = await moved();
    const statuses: number[] = [];
    for (let time = 0; time < 6; time += 1)
      statuses.push((await client.post(path, { currentPassword: password })).status);
    await desk.settled();
    expect(statuses).toEqual([200, 200, 200, 200, 429, 429]);
    expect(desk.mail.mailsTo(after)).toHaveLength(5);
  });

  it('401: a wrong password mails nothing (ADDRESS-4)', async () => {
    const { after, client } = await moved();
    desk.mail.clear();
    expect((await client.post(path, { currentPassword: 'Wrong-Horse-7' })).status).toBe(401);
    await desk.settled();
    expect(desk.mail.mailsTo(after)).toEqual([]);
  });

  it('200: an address that is verified has nothing to confirm; by an administrator it is dated anew (ADDRESS-8)', async () => {
    const client = await desk.app.member(desk.admin, 'proved@example.com');
    const since = await verifiedAt(client);
    const rows = (await desk.app.audit()).length;
    for (const body of [undefined, {}, { userId: client.userId }]) {
      expect(await client.post(path, body)).toMatchObject(confirmed);
    }
    expect(await desk.app.audit()).toHaveLength(rows);
    desk.app.clock.advance(1_000);
    expect(await desk.admin.post(path, { userId: client.userId })).toMatchObject(confirmed);
    expect(Date.parse(await verifiedAt(client))).toBe(Date.parse(since) + 1_000);
  });

  it('400: without mail no link can be sent, and an administrator still verifies (ADDRESS-8, MAIL-1)', async () => {
    const app = await TestApp.start();
    const admin = await app.setUp();
    const client = await app.member(admin, 'some@example.com');
    await client.patch(`/users/${client.userId}/email`, { email: 'other@example.com' });
    const { status, body } = await client.post(path);
    expect([status, body.message]).toEqual([400, expect.stringContaining('SMTP_URL')]);
    expect(await admin.post(path, { userId: client.userId })).toMatchObject(confirmed);
    await app.close();
  });

  it('403: a member for another user, who is here or not; and every personal access token (AUTH-32, AUTH-50)', async () => {
    const [one, other] = [await moved(), await moved()];
    const responses: TestResponse[] = [];
    for (const userId of [other.client.userId, '0'.repeat(24)]) responses.push(await one.client.post(path, { userId }));
    for (const each of [one.token, await desk.admin.token()]) {
      responses.push(await each.post(path, { userId: one.client.userId }));
    }
    expect(responses.map(({ status }) => status)).toEqual([403, 403, 403, 403]);
    expect([await verifiedAt(one.client), await verifiedAt(other.client)]).toEqual([null, null]);
  });

  it('404: an administrator for an unknown or deleted user (ERR-17)', async () => {
    const { client } = await moved();
    await desk.admin.delete(`/users/${client.userId}`);
    for (const userId of [client.userId, '0'.repeat(24)]) {
      const response = await desk.admin.post(path, { userId });
      expect(response).toMatchObject({ status: 404, body: { error: { code: 'NOT_FOUND' } } });
    }
  });

  it('400: an id that is none; 401: no credential (AUTH-19, ERR-10)', async () => {
    for (const userId of ['x', 7, null, ['0'.repeat(24)]]) {
      expect((await desk.admin.post(path, { userId })).status, JSON.stringify(userId)).toBe(400);
    }
    expect((await desk.app.anonymous.post(path)).status).toBe(401);
  });
});
