import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { outcomeOf } from '../support/browser.ts';
import { tokenIn } from '../support/mail-server.ts';
import { allowOidc, OidcServer, RunningClock, showTicket } from '../support/oidc-server.ts';
import { claimsOf } from '../support/sign-in.ts';
import { SignInDesk } from '../support/sign-in-desk.ts';
import { type Client, password } from '../support/test-app.ts';

describe('an address that a user chose, and that its owner confirmed without knowing the account', () => {
  let provider: OidcServer;
  let desk: SignInDesk;
  let count = 0;

  beforeAll(async () => {
    provider = await OidcServer.start();
    desk = await SignInDesk.start(provider.environment, new RunningClock());
    await allowOidc(desk.admin);
  });
  afterAll(async () => {
    await desk.close();
    await provider.stop();
  });

  /** A member under a made-up name whose chosen address the owner of it confirmed. */
  async function chosen() {
    count += 1;
    const [own, email] = [`mallory-${count}@example.com`, `newceo-${count}@example.com`];
    const member = await desk.app.member(desk.admin, own);
    await member.patch(`/users/${member.userId}/fullname`, { fullName: 'Charlotte Ceo' });
    await member.patch(`/users/${member.userId}/email`, { email, currentPassword: password });
    const mail = await desk.mail.mailTo(email);
    expect((await desk.app.with(tokenIn(mail)).post('/userAccount/email/confirm/token')).status).toBe(200);
    return { member, own, email, mail, token: await member.token() };
  }
  const arrive = async (email: string) =>
    outcomeOf(await provider.walk(desk.app, { sub: `owner-of-${email}`, email, email_verified: true, name: 'Owner' }));
  const signedInAs = async (outcome: Readonly<Record<string, string>>) => {
    const { status, body } = await showTicket(desk.app, outcome);
    return status === 200 ? claimsOf(body.accessToken) : null;
  };
  const statuses = (...clients: readonly Client[]) =>
    Promise.all(clients.map(async (client) => (await client.get('/whoami')).status));

  it('the mail tells of which account it is, and not the name that its user goes by (ADDRESS-14)', async () => {
    const { mail } = await chosen();
    expect(mail.text).not.toContain('Charlotte');
    expect(mail.raw).not.toContain('Charlotte');
    expect(mail.text).toContain('m…@example.com');
  });

  it('the first single sign-on with it ends what acted as the user before, and the notice lists it (ADDRESS-14)', async () => {
    const { member, email, token } = await chosen();
    desk.mail.clear();
    const outcome = await arrive(email);
    expect(await statuses(member, token)).toEqual([401, 401]);
    expect((await desk.app.signInTokens(email)).status).toBe(401);
    expect(await signedInAs(outcome)).toMatchObject({ userId: member.userId, email });
    const notice = await desk.mail.mailTo(email);
    expect(notice.text).toContain('have ended');
    const last = (await desk.app.audit()).filter(({ action }) => action === 'user.email-confirmed').at(-1);
    expect(last).toMatchObject({ subject_id: member.userId, details: { how: 'single-sign-on' } });
    // From now on the account is the owner's: a second one ends nothing.
    const session = (await showTicket(desk.app, await arrive(email))).body.accessToken;
    expect(await statuses(desk.app.with(session))).toEqual([200]);
  });

  it('nor does an address that its user went on to (ADDRESS-14)', async () => {
    const { member, email, token } = await chosen();
    await member.patch(`/users/${member.userId}/email`, { email: `next-${email}`, currentPassword: password });
    const outcome = await arrive(email);
    expect(await statuses(member, token)).toEqual([401, 401]);
    expect(await signedInAs(outcome)).toMatchObject({ userId: member.userId, email });
    expect((await desk.admin.get(`/users/${member.userId}`)).body).toMatchObject({
      email,
      emailVerifiedAt: expect.any(String),
    });
  });

  it('one that an administrator confirms or sets ends nothing (ADDRESS-10, ADDRESS-14)', async () => {
    const { member, email, token } = await chosen();
    await desk.admin.post('/userAccount/email/confirm', { userId: member.userId });
    await arrive(email);
    expect(await statuses(member, token)).toEqual([200, 200]);
    const other = await chosen();
    await desk.admin.patch(`/users/${other.member.userId}/email`, { email: `set-${other.email}` });
    await arrive(`set-${other.email}`);
    expect(await statuses(other.member, other.token)).toEqual([200, 200]);
  });
});
