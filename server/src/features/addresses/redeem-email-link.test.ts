import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tokenIn } from '../../../test/support/mail-server.ts';
import { SignInDesk } from '../../../test/support/sign-in-desk.ts';
import { type Client, type Json, password, type TestResponse } from '../../../test/support/test-app.ts';
import { apiErrors } from '../../base/api-errors.ts';
import { hour } from '../../base/clock.ts';

const path = '/userAccount/email/confirm/token';
const wrong = 'Wrong-Horse-7';

describe('POST /userAccount/email/confirm/token', () => {
  let desk: SignInDesk;
  let users = 0;
  beforeAll(async () => {
    desk = await SignInDesk.start({ RATE_LIMIT: 'on' });
  });
  afterAll(() => desk.close());

  async function someone(): Promise<{ client: Client; before: string; after: string }> {
    users += 1;
    const before = `before-${users}@example.com`;
    return { client: await desk.app.member(desk.admin, before), before, after: `after-${users}@example.com` };
  }
  /** A user who signs in without any password. */
  async function withoutPassword() {
    const user = await someone();
    await desk.app.services.db.transaction((tx) =>
      tx.deleteFrom('password_credentials').where('user_id', '=', user.client.userId).execute(),
    );
    desk.mail.clear();
    return user;
  }
  /** The last mail to somebody that asks to allow another address, besides the notice of the change. */
  async function approvalTo(address: string) {
    await desk.settled();
    const mail = desk.mail.mailsTo(address).findLast(({ text }) => text.includes('step=approve'));
    if (!mail) throw new Error(`no mail to ${address} asks to allow another address`);
    return mail;
  }
  /** Changes the address; answers the token of the link that was mailed to the new one. */
  async function change(by: Client, { userId }: Client, body: Json): Promise<string> {
    desk.mail.clear();
    const response = await by.patch(`/users/${userId}/email`, body);
    expect([response.status, response.body.emailVerifiedAt]).toEqual([200, null]);
    return tokenIn(await desk.mail.mailTo(body.email));
  }
  const open = (token: string, body?: Json): Promise<TestResponse> => desk.app.with(token).post(path, body);
  const verifiedAt = async ({ userId }: Client) => (await desk.admin.get(`/users/${userId}`)).body.emailVerifiedAt;
  const code = ({ status, body }: TestResponse) => [status, body.error?.code];

  it('200: the link alone verifies an address that was set with the password; the earlier one is free (ADDRESS-4, ADDRESS-5)', async () => {
    const { client, before, after } = await someone();
    const token = await change(client, client, { email: after, currentPassword: password });
    const notice = await desk.mail.mailTo(before);
    expect([notice.subject, notice.text]).toEqual([
      expect.stringContaining('was changed'),
      expect.stringContaining('not verified yet'),
    ]);
    const events = await desk.app.events();
    expect(await open(token)).toMatchObject({ status: 200, body: { message: 'E-mail address confirmed' } });
    expect(await verifiedAt(client)).toBe(new Date(desk.app.clock.now()).toISOString());
    expect((await desk.app.audit()).at(-1)).toMatchObject({
      action: 'user.email-confirmed',
      actor_user_id: client.userId,
      details: { how: 'link' },
    });
    const [told, ...more] = (await desk.app.events()).slice(events.length);
    expect([told?.event_type, told?.payload.email, told?.payload.emailVerified, more]).toEqual([
      'userUpdated',
      after,
      undefined,
      [],
    ]);
    expect(events.at(-1)?.payload).toMatchObject({ email: after, emailVerified: false });
    expect(code(await open(token))).toEqual([410, 'GONE']);
    expect((await desk.admin.post('/users', { fullName: 'N', email: before })).status).toBe(201);
  });

  it.each(['session', 'token', 'administrator’s token'])(
    'the password is asked for where the address was set by a %s without it, so that a thief gets nowhere (ADDRESS-4)',
    async (kind) => {
      const { client, before, after } = await someone();
      const by = { session: client, token: await client.token() }[kind] ?? (await desk.admin.token());
      const token = await change(by, client, { email: after });
      const missing = await open(token);
      expect([...code(missing), missing.body.error.details[0].field]).toEqual([
        400,
        'VALIDATION_ERROR',
        'body.currentPassword',
      ]);
      expect(code(await open(token, { currentPassword: wrong }))).toEqual([401, 'UNAUTHORIZED']);
      expect(await verifiedAt(client)).toBeNull();
      // What the thief is after: mail to recover the account at an address of its own.
      await desk.app.anonymous.post('/userAccount/password/forgot', { email: after });
      await desk.settled();
      expect(desk.mail.mailsTo(before).some(({ subject }) => subject.startsWith('Reset'))).toBe(true);
      expect(desk.mail.mailsTo(after)).toHaveLength(1);
      expect((await open(token, { currentPassword: password })).status).toBe(200);
    },
  );

  it('no link goes out for a token on an account without a password, where nothing could be asked for (ADDRESS-4)', async () => {
    const { client, before, after } = await withoutPassword();
    const token = await client.token();
    expect((await token.patch(`/users/${client.userId}/email`, { email: after })).status).toBe(200);
    await desk.settled();
    expect(desk.mail.mailsTo(after)).toEqual([]);
    // The user asks for one in a session.
    await client.post('/userAccount/email/confirm');
    expect((await open(tokenIn(await approvalTo(before)))).status).toBe(200);
    expect((await open(tokenIn(await desk.mail.mailTo(after)))).status).toBe(200);
  });

  it('without a password, the owner of the verified address allows it first, so that a stolen session stays one (ADDRESS-16)', async () => {
    const { client, before, after } = await withoutPassword();
    await client.patch(`/users/${client.userId}/email`, { email: after });
    const approval = await approvalTo(before);
    await client.post('/userAccount/email/confirm');
    await desk.settled();
    expect(desk.mail.mailsTo(after)).toEqual([]);
    expect((await open(tokenIn(approval))).status).toBe(410);
    desk.mail.clear();
    await desk.app.anonymous.post('/userAccount/password/forgot', { email: after });
    await desk.settled();
    expect([desk.mail.mailsTo(after), desk.mail.mailsTo(before).length]).toEqual([[], 1]);
    desk.mail.clear();
    await client.post('/userAccount/email/confirm');
    const token = tokenIn(await approvalTo(before));
    const asPassword = await desk.app
      .with(token)
      .post('/userAccount/password/reset/token', { password: 'Nine-Horses-8' });
    expect(code(asPassword)).toEqual([401, 'TOKEN_INVALID']);
    const allowed = await open(token);
    expect([allowed.status, allowed.body.message]).toEqual([200, expect.stringContaining('We send a mail')]);
    expect(await verifiedAt(client)).toBeNull();
    expect((await open(token)).status).toBe(410);
    expect((await open(tokenIn(await desk.mail.mailTo(after)))).status).toBe(200);
    expect(await verifiedAt(client)).not.toBeNull();
  });

  it('a wrong password leaves the address as it was, and is slowed down like sign-in (ADDRESS-4, AUTH-43)', async () => {
    const { client, before, after } = await someone();
    const body = { email: after, currentPassword: wrong };
    const attempts = [
      () => client.patch(`/users/${client.userId}/email`, body),
      () => client.put(`/users/${client.userId}`, body),
    ];
    const statuses: number[] = [];
    for (let time = 0; time < 8; time += 1) statuses.push((await attempts[time % 2]?.())?.status ?? 0);
    expect(statuses.slice(0, 5)).toEqual([401, 401, 401, 401, 401]);
    expect(statuses.slice(6)).toEqual([429, 429]);
    expect((await client.get(`/users/${client.userId}`)).body.email).toBe(before);
  });

  it('410: after another change, and after a change to and fro (ADDRESS-5, LINK-3)', async () => {
    const { client, before, after } = await someone();
    const given = { email: after, currentPassword: password };
    const first = await change(client, client, given);
    const second = await change(client, client, { ...given, email: `x-${after}` });
    expect(code(await open(first))).toEqual([410, 'GONE']);
    await client.patch(`/users/${client.userId}/email`, { email: before });
    expect(code(await open(second))).toEqual([410, 'GONE']);
    await change(client, client, given);
    for (const old of [first, second]) expect((await open(old)).status).toBe(410);
    expect(await verifiedAt(client)).toBeNull();
  });

  it('200: of two who open it at once one does (LINK-2)', async () => {
    const { client, after } = await someone();
    const token = await change(client, client, { email: after, currentPassword: password });
    const responses = await Promise.all([open(token), open(token)]);
    expect(responses.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 410]);
  });

  it('401: the link sets no password, and links that set one confirm nothing (ADDRESS-5, LINK-1)', async () => {
    const { client, before, after } = await someone();
    const token = await change(client, client, { email: after, currentPassword: password });
    const reset = { password: 'Another-Horse-8' };
    const refused = await desk.app.with(token).post('/userAccount/password/reset/token', reset);
    expect(code(refused)).toEqual([401, 'TOKEN_INVALID']);
    desk.mail.clear();
    await desk.app.anonymous.post('/userAccount/password/forgot', { email: before });
    const other = tokenIn(await desk.mail.mailTo(before));
    expect(code(await open(other))).toEqual([401, 'TOKEN_INVALID']);
    for (const bad of ['lkl_x', password]) expect((await open(bad)).status).toBe(401);
    expect((await desk.app.anonymous.post(path)).status).toBe(401);
    expect(await verifiedAt(client)).toBeNull();
  });

  it('410: after 48 hours (ADDRESS-5)', async () => {
    const [{ client, after }, late] = [await someone(), await someone()];
    const given = { currentPassword: password };
    const [one, other] = [
      await change(client, client, { ...given, email: after }),
      await change(late.client, late.client, { ...given, email: late.after }),
    ];
    desk.app.clock.advance(48 * hour - 1);
    expect((await open(one)).status).toBe(200);
    desk.app.clock.advance(1);
    expect((await open(other)).status).toBe(410);
  });
});

describe('an address that another user holds unverified', () => {
  let desk: SignInDesk;
  let users = 0;
  beforeAll(async () => {
    desk = await SignInDesk.start();
  });
  afterAll(() => desk.close());

  /** The owner of a mailbox, who has another address here, and a member who took the mailbox's address unverified. */
  async function squatted() {
    users += 1;
    const [email, own, other] = [`real-${users}@example.com`, `own-${users}@example.com`, `other-${users}@example.com`];
    const [owner, squatter] = [await desk.app.member(desk.admin, own), await desk.app.member(desk.admin, other)];
    expect((await squatter.patch(`/users/${squatter.userId}/email`, { email })).status).toBe(200);
    await Promise.all([desk.mail.mailTo(email), desk.mail.mailTo(other)]);
    desk.mail.clear();
    return { email, own, other, owner, squatter };
  }
  const ask = (by: Client, userId: string, email: string) => by.patch(`/users/${userId}/email`, { email });
  const open = (token: string, body?: Json): Promise<TestResponse> => desk.app.with(token).post(path, body);
  const userOf = async ({ userId }: Client) => (await desk.admin.get(`/users/${userId}`)).body;

  it('goes to the owner of the mailbox, who asks, opens the link and gives the password (ADDRESS-13, ADDRESS-7)', async () => {
    const { email, own, other, owner, squatter } = await squatted();
    const response = await ask(owner, owner.userId, email.toUpperCase());
    expect([response.status, response.body.message]).toEqual([409, apiErrors.emailHeldUnverified.text]);
    expect([(await userOf(owner)).email, (await userOf(squatter)).email]).toEqual([own, email]);
    const token = tokenIn(await desk.mail.mailTo(email));
    expect((await open(token)).status).toBe(400);
    expect((await open(token, { currentPassword: wrong })).status).toBe(401);
    const [events, rows] = [(await desk.app.events()).length, (await desk.app.audit()).length];
    expect((await open(token, { currentPassword: password })).status).toBe(200);
    const now = new Date(desk.app.clock.now()).toISOString();
    expect(await userOf(owner)).toMatchObject({ email, emailVerifiedAt: now });
    expect((await userOf(squatter)).email).toBe(other);
    expect((await desk.app.events()).slice(events)).toHaveLength(2);
    expect((await desk.app.audit()).slice(rows)).toMatchObject([
      { action: 'user.email-given-back', subject_id: squatter.userId, actor_user_id: owner.userId },
      { action: 'user.email-confirmed', subject_id: owner.userId, actor_user_id: owner.userId },
    ]);
    expect((await desk.mail.mailTo(own)).subject).toContain('was changed');
    expect((await desk.mail.mailTo(other)).subject).toContain('changed back');
    expect((await open(token, { currentPassword: password })).status).toBe(410);
    expect((await desk.signIn(email, 'password', password)).status).toBe(200);
  });

  it('409: goes to no one else once it is proved, anyone who has a link (ADDRESS-13)', async () => {
    const { email, own, owner, squatter } = await squatted();
    await ask(owner, owner.userId, email);
    const token = tokenIn(await desk.mail.mailTo(email));
    await desk.admin.post('/userAccount/email/confirm', { userId: squatter.userId });
    expect((await open(token, { currentPassword: password })).status).toBe(409);
    expect([(await userOf(owner)).email, (await userOf(squatter)).email]).toEqual([own, email]);
  });

  it('409 without a mail: asked for by a token, for another user, and while the own address is unverified (ADDRESS-13)', async () => {
    const { email, owner, squatter } = await squatted();
    const third = await desk.app.member(desk.admin, `third-${users}@example.com`);
    expect((await ask(third, third.userId, `moved-${users}@example.com`)).status).toBe(200);
    await desk.mail.mailTo(`moved-${users}@example.com`);
    const refused = [
      await ask(await owner.token(), owner.userId, email),
      await ask(third, third.userId, email),
      await ask(await desk.admin.token(), squatter.userId, (await userOf(owner)).email),
    ];
    expect(refused.map(({ status, body }) => [status, body.message])).toEqual(
      refused.map(() => [409, apiErrors.emailTaken.text]),
    );
    await desk.settled();
    expect(desk.mail.mailsTo(email)).toEqual([]);
  });
});
