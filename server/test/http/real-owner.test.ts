import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callTool, codeOf } from '../support/agents.ts';
import { outcomeOf } from '../support/browser.ts';
import { MailServer, tokenIn } from '../support/mail-server.ts';
import { allowOidc, OidcServer, RunningClock, showTicket } from '../support/oidc-server.ts';
import { type Client, type Json, password, TestApp, type TestResponse } from '../support/test-app.ts';

describe('an address that an account holds unverified', () => {
  let provider: OidcServer;
  let mail: MailServer;
  let app: TestApp;
  let admin: Client;
  let count = 0;
  beforeAll(async () => {
    [provider, mail] = [await OidcServer.start(), await MailServer.start()];
    const environment = { ...provider.environment, OIDC_ALLOWED_DOMAINS: 'example.com', SMTP_URL: mail.url };
    app = await TestApp.start(environment, new RunningClock());
    admin = await app.setUp();
    await allowOidc(admin);
  });
  afterAll(async () => {
    await app.close();
    await mail.stop();
    await provider.stop();
  });

  /** Requests by which a member claims an address. */
  const claims: readonly ((member: Client, email: string) => Promise<unknown>)[] = [
    (member, email) => member.patch(`/users/${member.userId}/email`, { email }),
    (member, email) => member.put(`/users/${member.userId}`, { email, currentPassword: password }),
    async (member, email) =>
      (await member.token({ scopes: ['user:write'] })).patch(`/users/${member.userId}/email`, { email }),
    async (member, email) =>
      callTool(await member.token({ scopes: ['user:write'] }), 'update_user', { id: member.userId, email }),
    async (member, email) => {
      const by = await admin.token({ scopes: ['user:write'] });
      await by.put(`/users/${member.userId}`, { email: email.toUpperCase() });
    },
  ];
  interface Claim {
    readonly member: Client;
    readonly own: string;
    readonly claimed: string;
  }
  async function claim(domain = 'example.com'): Promise<Claim> {
    count += 1;
    const [own, claimed] = [`member-${count}@example.com`, `ceo-${count}@${domain}`];
    const member = await app.member(admin, own);
    await claims[count % claims.length]?.(member, claimed);
    expect((await admin.get(`/users/${member.userId}`)).body).toMatchObject({ email: claimed, emailVerifiedAt: null });
    return { member, own, claimed };
  }
  let subjects = 0;
  const walk = async (email: string, more: Json = {}) => {
    subjects += 1;
    const user = { sub: `owner-${subjects}`, email, email_verified: true, name: 'Chief', ...more };
    return outcomeOf(await provider.walk(app, user));
  };
  const userOf = async (outcome: Readonly<Record<string, string>>) => {
    const { status, body } = await showTicket(app, outcome);
    expect(status).toBe(200);
    return JSON.parse(Buffer.from(body.accessToken.split('.')[1], 'base64url').toString()).userId;
  };
  const idOf = async (email: string): Promise<string | undefined> =>
    (await admin.get(`/users?search=${encodeURIComponent(email)}`)).body.users[0]?._id;
  const code = ({ status, body }: TestResponse) => [status, body.error?.code];

  /** Expects the member's remaining state, and that the owner has another account. */
  async function expectGivenBack({ member, own, claimed }: Claim, since: number, isHere = true): Promise<void> {
    const { body } = await admin.get(`/users/${member.userId}`);
    expect(body).toMatchObject({ email: own, emailVerifiedAt: expect.any(String) });
    const ownerId = (await idOf(claimed)) ?? null;
    expect([ownerId !== null, ownerId === member.userId]).toEqual([isHere, false]);
    const changes = { email: { before: claimed, after: own }, recoveryEmail: { before: own, after: null } };
    const rows = (await app.audit()).slice(since).filter(({ action }) => action === 'user.email-given-back');
    expect(rows).toMatchObject([{ subject_id: member.userId, changes }]);
    const events = (await app.events()).filter(({ payload }) => payload.userId === member.userId);
    expect(events.at(-1)).toMatchObject({ event_type: 'userUpdated', payload: { email: own } });
    await mail.until(
      () => mail.mailsTo(own).some(({ subject, text }) => subject.includes('changed back') && text.includes(claimed)),
      'a notice',
    );
    expect((await app.signInTokens(own)).status).toBe(200);
    const { body: signedIn } = await app.signInTokens(claimed);
    const asOwner = signedIn.accessToken && (await app.with(signedIn.accessToken).get(`/users/${member.userId}/email`));
    expect(asOwner?.status ?? 403).toBe(403);
    expect((await member.get(`/users/${member.userId}`)).body._id).toBe(member.userId);
  }

  const ways: readonly (readonly [string, (claimed: string) => Promise<TestResponse>])[] = [
    ['POST /users', (email) => admin.post('/users', { fullName: 'Chief', email })],
    [
      'POST /users with a token, in other letters',
      async (email) =>
        (await admin.token({ scopes: ['user:invite'] })).post('/users', {
          fullName: 'Chief',
          email: email.toUpperCase(),
        }),
    ],
    ['POST /users/bulk/invite', (email) => admin.post('/users/bulk/invite', { emails: [email] })],
    [
      'PATCH /users/:id/email of the owner’s account',
      async (email) => admin.patch(`/users/${(await app.member(admin, `old-${email}`)).userId}/email`, { email }),
    ],
    [
      'PUT /users/:id of the owner’s account',
      async (email) =>
        admin.put(`/users/${(await app.member(admin, `old-${email}`)).userId}`, { email, designation: 'CEO' }),
    ],
  ];
  it.each(ways)('goes to the owner by %s (ADDRESS-6, ADDRESS-7)', async (_, prove) => {
    const claimed = await claim();
    const since = (await app.audit()).length;
    expect((await prove(claimed.claimed)).status).toBeLessThan(300);
    await expectGivenBack(claimed, since);
  });

  it.each(claims.map((_, place) => place))(
    'goes to the owner by single sign-on, however it was claimed (%i) (ADDRESS-6)',
    async () => {
      const claimed = await claim();
      const since = (await app.audit()).length;
      expect(await userOf(await walk(claimed.claimed))).not.toBe(claimed.member.userId);
      await expectGivenBack(claimed, since);
      // The thief’s credentials act as the thief: nothing of the owner is in that account.
      expect((await claimed.member.get('/userAccount/sessions')).body.sessions).toHaveLength(2);
    },
  );

  it('is lost to its owner, too, whom the provider lets in without an account, or by another address (ADDRESS-6)', async () => {
    const foreign = await claim('elsewhere.example');
    let since = (await app.audit()).length;
    expect(await walk(foreign.claimed)).toEqual({ error: 'no_account' });
    await expectGivenBack(foreign, since, false);
    const owner = await app.member(admin, 'renamed@example.com');
    await walk('renamed@example.com', { sub: 'renamed' });
    const renamed = await claim();
    since = (await app.audit()).length;
    expect(await userOf(await walk(renamed.claimed, { sub: 'renamed' }))).toBe(owner.userId);
    await expectGivenBack(renamed, since, false);
  });

  it('goes to the owner from a deleted account, which stays deleted with its last verified address (ADDRESS-6)', async () => {
    const { member, own, claimed } = await claim();
    await app.deleteUser(member.userId);
    expect((await admin.post('/users/bulk/invite', { emails: [claimed] })).status).toBe(200);
    expect(await idOf(claimed)).not.toBe(member.userId);
    expect((await admin.post('/users', { fullName: 'N', email: own })).body.message).toContain('restore');
    const again = await claim();
    await app.deleteUser(again.member.userId);
    // The owner of the verified address comes back, and not with the one that was only claimed.
    expect((await admin.post('/users/bulk/invite', { emails: [again.own] })).status).toBe(200);
    expect((await admin.get(`/users/${again.member.userId}`)).body.email).toBe(again.own);
    expect((await admin.post(`/users/${member.userId}/restore`)).body).toMatchObject({ email: own });
  });

  it('stays where it is for every caller who proves nothing: another claim, tokens, unverified sign-on (ADDRESS-6, USER-33)', async () => {
    const { member, own, claimed } = await claim();
    const other = await app.member(admin, `other-${own}`);
    const rows = (await app.audit()).length;
    const byToken = await admin.token({ scopes: ['user:write'] });
    for (const spelled of [claimed, claimed.toUpperCase(), claimed.replace('example', 'ｅｘａｍｐｌｅ')]) {
      for (const by of [other, await other.token({ scopes: ['user:write'] }), byToken]) {
        expect(code(await by.patch(`/users/${other.userId}/email`, { email: spelled }))).toEqual([409, 'CONFLICT']);
      }
    }
    const tool = await callTool(byToken, 'update_user', { id: other.userId, email: claimed });
    expect(codeOf(tool)).toBe('CONFLICT');
    expect(await walk(claimed, { email_verified: false })).toEqual({ error: 'email_not_verified' });
    expect(await walk(claimed.replace('e', '\u212e'))).toEqual({ error: 'email_not_verified' });
    // Nor does the last verified address belong to anyone else meanwhile.
    expect((await admin.post('/users', { fullName: 'N', email: own })).status).toBe(409);
    expect((await app.audit()).slice(rows).some(({ action }) => action === 'user.email-given-back')).toBe(false);
    expect(await userOf(await walk(own))).toBe(member.userId);
  });

  it('gets no mail but the link: neither recovery nor codes (ADDRESS-3)', async () => {
    const { own, claimed } = await claim();
    for (const email of [own, claimed]) await app.anonymous.post('/userAccount/password/forgot', { email });
    await mail.until(
      () => mail.mailsTo(own).filter(({ subject }) => subject.startsWith('Reset')).length === 2,
      'both links',
    );
    const subjects = new Set(mail.mailsTo(claimed).map(({ subject }) => subject));
    expect(subjects).toEqual(new Set(['Confirm your e-mail address for Example Ltd']));
  });

  it('is verified for a member whom the provider knows and who comes back with it (ADDRESS-1)', async () => {
    const member = await app.member(admin, 'moving@example.com');
    await walk('moving@example.com', { sub: 'moving' });
    await member.patch(`/users/${member.userId}/email`, { email: 'moved@example.com' });
    expect(await userOf(await walk('moved@example.com', { sub: 'moving' }))).toBe(member.userId);
    expect((await admin.get(`/users/${member.userId}`)).body.emailVerifiedAt).toEqual(expect.any(String));
    expect((await app.audit()).some(({ details }) => details.how === 'single-sign-on')).toBe(true);
  });

  it.each([1, 2, 3])('has one owner after all who prove it at once (%i) (ADDRESS-6, STORE-5)', async () => {
    const { member, own, claimed } = await claim();
    const body = { fullName: 'Chief', email: claimed };
    const link = tokenIn(await mail.mailTo(claimed));
    const [created, invited, opened, outcome] = await Promise.all([
      admin.post('/users', body),
      admin.post('/users/bulk/invite', { emails: [claimed] }),
      app.with(link).post('/userAccount/email/confirm/token', { currentPassword: password }),
      walk(claimed),
    ]);
    const rows = await app.services.db.read.selectFrom('users').where('email', '=', claimed).selectAll().execute();
    expect(rows).toMatchObject([{ recovery_email: null }]);
    const holder = rows[0]?.id;
    const isMembers = opened.status === 200;
    expect(holder === member.userId).toBe(isMembers);
    expect([200, 410]).toContain(opened.status);
    expect([201, 409]).toContain(created.status);
    expect([200, 409]).toContain(invited.status);
    expect((await admin.get(`/users/${member.userId}`)).body.email).toBe(isMembers ? claimed : own);
    const arrived = outcome['oidc'] === undefined ? holder : await userOf(outcome);
    expect(arrived).toBe(holder);
  });

  it('notice of the first single sign-on: lists what else can act as the user, and goes out once (ADDRESS-10)', async () => {
    const member = await app.member(admin, 'owner@example.com');
    for (const name of ['laptop', 'ci <b>']) {
      expect((await member.post('/personal-access-tokens', { name, expiryDays: 90 })).status).toBe(201);
    }
    const find = () => mail.mailsTo('owner@example.com').filter(({ subject }) => subject.startsWith('Single sign-on'));
    await walk('owner@example.com', { sub: 'owner' });
    await mail.until(() => find().length === 1, 'the notice');
    const text = find()[0]?.text.replaceAll('\n', ' ') ?? '';
    for (const fact of ['a password', 'open: 1', '“ci <b>”', '“laptop”']) expect(text).toContain(fact);
    await walk('owner@example.com', { sub: 'owner' });
    await admin.post('/users', { fullName: 'New', email: 'fresh@example.com' });
    await walk('fresh@example.com');
    await app.services.afterResponse.close();
    expect([find().length, mail.mailsTo('fresh@example.com').length]).toEqual([1, 0]);
  });
});
