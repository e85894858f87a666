import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Browser, outcomeOf } from '../support/browser.ts';
import { tokenIn } from '../support/mail-server.ts';
import { allowOidc, OidcServer, RunningClock } from '../support/oidc-server.ts';
import { codeIn, SignInDesk } from '../support/sign-in-desk.ts';
import { type Client, password } from '../support/test-app.ts';

const chosen = 'Nine-Horses-11-Ran';

describe('what was proved of a user and is not used yet', () => {
  let provider: OidcServer;
  let desk: SignInDesk;
  let users = 0;

  beforeAll(async () => {
    provider = await OidcServer.start();
    desk = await SignInDesk.start(provider.environment, new RunningClock());
  });
  afterAll(async () => {
    await desk.close();
    await provider.stop();
  });

  const setPassword = (token: string, next = chosen) =>
    desk.app.with(token).post('/userAccount/password/reset/token', { password: next });
  const reauthorize = (token: string) => desk.app.with(token).post('/userAccount/email/confirm/token');

  /** A user with an unverified address, and whatever a thief may have proved of the user meanwhile. */
  async function proved() {
    users += 1;
    const [mailbox, email] = [`owner-${users}@example.com`, `moved-${users}@example.com`];
    await desk.setSteps(['password', 'otp']);
    const client = await desk.app.member(desk.admin, mailbox);
    await client.patch(`/users/${client.userId}/email`, { email, currentPassword: password });
    const confirmation = tokenIn(await desk.mail.mailTo(email));
    await allowOidc(desk.admin, [['password'], ['otp', 'oidc']]);
    await desk.app.anonymous.post('/userAccount/password/forgot', { email: mailbox });
    await desk.settled();
    const isReset = ({ text }: { text: string }) => text.includes('/reset-password#');
    const mails = () => desk.mail.mailsTo(mailbox).filter(isReset);
    await expect.poll(() => mails().length, { timeout: 10_000 }).toBe(1);
    const recovery = tokenIn(mails()[0] ?? { text: '' });
    const stepped = await desk.begin(email);
    const first = await desk.take(stepped, ['password', password]);
    expect([first.status, first.body.accessToken]).toEqual([200, undefined]);
    const forTicket = await desk.begin(email);
    const identity = { sub: mailbox, email: mailbox, email_verified: true };
    const ticket = outcomeOf(await provider.walk(desk.app, identity, { token: forTicket }))['oidc'] ?? '';
    const code = await desk.codeFor(email, mailbox);
    const browser = new Browser(desk.app);
    const back = await provider.signIn(browser, identity);
    const comeBack = async () => outcomeOf((await browser.open(back)).location ?? '')['error'] ?? 'let in';
    return { client, email, mailbox, confirmation, recovery, stepped, forTicket, ticket, code, comeBack };
  }
  type Proved = Awaited<ReturnType<typeof proved>>;

  /** The status of each: a second step with the ticket, with the code, in the sign-in whose first step was taken, and both links. */
  async function statuses({ email, mailbox, ...given }: Proved, present: string) {
    await desk.take(given.forTicket, ['password', present]);
    const ticket = (await desk.take(given.forTicket, ['oidc', given.ticket])).status;
    const fresh = await desk.begin(email);
    await desk.take(fresh, ['password', present]);
    const code = (await desk.take(fresh, ['otp', given.code])).status;
    desk.mail.clear();
    await desk.askForCode(email);
    const next = codeIn(await desk.mail.mailTo(mailbox));
    const step = (await desk.take(given.stepped, ['otp', next])).status;
    const links = [(await setPassword(given.recovery, 'short')).status, (await reauthorize(given.confirmation)).status];
    return { ticket, code, step, links, visit: await given.comeBack() };
  }

  it('stays when one session ends, or nothing does (SESSION-14)', async () => {
    const given = await proved();
    const [{ id }] = (await given.client.get('/userAccount/sessions')).body.sessions;
    expect((await desk.admin.delete(`/users/${given.client.userId}/sessions/${id}`)).status).toBe(200);
    expect(await statuses(given, password)).toEqual({
      ticket: 200,
      code: 200,
      step: 200,
      links: [400, 200],
      visit: 'let in',
    });
  });

  const end: readonly [string, string, (client: Client, given: Proved) => Promise<{ readonly status: number }>][] = [
    ['an administrator ends all sessions', password, ({ userId }) => desk.admin.delete(`/users/${userId}/sessions`)],
    ['the user logs out everywhere', password, (client) => client.post('/userAccount/logout/manual', { all: true })],
    [
      'the user changes the password',
      chosen,
      (client) => client.post('/userAccount/password/reset', { currentPassword: password, newPassword: chosen }),
    ],
    ['a link sets the password', chosen, (_, { recovery }) => setPassword(recovery)],
    [
      'the user is deleted and restored',
      password,
      async ({ userId }) => {
        await desk.admin.delete(`/users/${userId}`);
        return desk.admin.post(`/users/${userId}/restore`);
      },
    ],
  ];

  it.each(end)('ends when %s (SESSION-14, AUTH-74)', async (_, present, act) => {
    const given = await proved();
    expect((await act(given.client, given)).status).toBe(200);
    expect(await statuses(given, present)).toEqual({
      ticket: 401,
      code: 401,
      step: 401,
      links: [410, 410],
      visit: 'expired',
    });
    // Whoever goes to the provider again is let in.
    const identity = { sub: given.mailbox, email: given.mailbox, email_verified: true };
    expect(outcomeOf(await provider.walk(desk.app, identity))).toHaveProperty('oidc');
  });
});
