import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { outcomeOf } from '../../../test/support/browser.ts';
import { holdUntil } from '../../../test/support/gates.ts';
import {
  allowOidc,
  OidcServer,
  type OidcUser,
  RunningClock,
  showTicket,
  startUrlOf,
} from '../../../test/support/oidc-server.ts';
import { storedRows } from '../../../test/support/second-connection.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

let subjects = 0;
/** Returns an identity that no provider has sent yet, with a verified address. */
function stranger(email: unknown, more: Partial<OidcUser> = {}): OidcUser {
  subjects += 1;
  return { sub: `subject-${subjects}`, email, email_verified: true, name: 'Katherine Johnson', ...more };
}

describe('whom GET /userAccount/oidc/callback finds', () => {
  const clock = new RunningClock();
  let provider: OidcServer;
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    provider = await OidcServer.start();
    const domains = 'example.com, Other.Example,xn--bcher-kva.example';
    app = await TestApp.start({ ...provider.environment, OIDC_ALLOWED_DOMAINS: domains }, clock);
    admin = await app.setUp();
    await allowOidc(admin);
  });
  afterAll(async () => {
    await app.close();
    await provider.stop();
  });

  const walk = async (user: OidcUser) => outcomeOf(await provider.walk(app, user));
  const user = async (id: string) => (await admin.get(`/users/${id}`)).body;
  const ownerOf = async (outcome: Readonly<Record<string, string>>) => {
    const { status, body } = await showTicket(app, outcome);
    expect(status).toBe(200);
    return JSON.parse(Buffer.from(body.accessToken.split('.')[1], 'base64url').toString()).userId;
  };
  const users = async () => (await admin.get('/users')).body.map(({ email }: Json) => email);
  const newUser = async (email: string) =>
    (await admin.post('/users', { fullName: 'Grace', email })).body._id as string;

  it('links a verified address to the account that has it; the first sign-in sets hasLoggedIn (AUTH-11, AUTH-48)', async () => {
    const id = await newUser('grace@example.com');
    const events = await app.events();
    const outcome = await walk(stranger('grace@example.com'));
    expect(outcome).toEqual({ oidc: expect.any(String), email: 'grace@example.com' });
    expect((await user(id)).hasLoggedIn).toBe(false);
    expect(await ownerOf(outcome)).toBe(id);
    expect(await user(id)).toMatchObject({ hasLoggedIn: true, fullName: 'Grace' });
    expect(await app.events()).toEqual(events);
  });

  it('links where the address is told at the own place of the provider only (AUTH-48)', async () => {
    const id = await newUser('userinfo@example.com');
    const page = await provider.walk(app, stranger('userinfo@example.com'), { atUserinfo: true });
    expect(await ownerOf(outcomeOf(page))).toBe(id);
  });

  it('finds someone by the subject from then on, whatever the address is by now (AUTH-48)', async () => {
    const id = await newUser('before@example.com');
    const user = stranger('before@example.com');
    await walk(user);
    const outcome = await walk({ ...user, email: 'ada@example.com' });
    expect(outcome).toMatchObject({ email: 'before@example.com' });
    expect(await ownerOf(outcome)).toBe(id);
    await admin.patch(`/users/${id}/email`, { email: 'after@example.com' });
    expect(await walk(user)).toMatchObject({ email: 'after@example.com' });
  });

  it.each([
    ['not verified', { email_verified: false }],
    ['not said to be verified', { email_verified: undefined }],
    ['verified by another text', { email_verified: 'yes' }],
    ['missing', { email: undefined }],
    ['null', { email: null }],
    ['a number', { email: 7 }],
    ['a list', { email: ['ada@example.com'] }],
    ['empty', { email: '' }],
    ['no address', { email: 'ada' }],
    ['two addresses', { email: 'ada@example.com,evil@example.com' }],
    ['an address with a comment', { email: 'ada(x)@example.com' }],
    ['spelled with a Kelvin sign', { email: '\u212aatherine@example.com' }],
    ['spelled with a long s', { email: 'gu\u017ft@example.com' }],
    ['of a domain in full width', { email: 'ada@ｅｘａｍｐｌｅ.com' }],
    ['of a domain with a Kelvin sign', { email: 'ada@\u212aelvin.example' }],
    ['of a domain with an ideographic stop', { email: 'ada@example。com' }],
    ['of a decomposed domain', { email: 'b@bu\u0308cher.example' }],
    ['with a space before it', { email: ' ada@example.com' }],
    ['too long', { email: `${'a'.repeat(300)}@example.com` }],
  ])(
    'tells of email_not_verified where the address is %s, and writes nothing (ADDRESS-9, AUTH-48, AUTH-56)',
    async (_, more) => {
      const user = stranger('ada@example.com', more);
      const before = storedRows(app);
      expect(await walk(user)).toEqual({ error: 'email_not_verified' });
      expect(storedRows(app)).toEqual(before);
    },
  );

  it('tells so of someone linked before, too, and signs in again once it is verified (AUTH-48)', async () => {
    await newUser('sometimes@example.com');
    const user = stranger('sometimes@example.com');
    await walk(user);
    expect(await walk({ ...user, email_verified: false })).toEqual({ error: 'email_not_verified' });
    expect(await walk(user)).toHaveProperty('oidc');
  });

  it.each([
    ['other letters', 'spelled@example.com', 'Spelled@EXAMPLE.com'],
    ['a domain in its own letters', 'b@xn--bcher-kva.example', 'b@bücher.example'],
  ])('links an address in %s (AUTH-48, USER-9)', async (_, stored, told) => {
    const id = await newUser(stored);
    expect(await ownerOf(await walk(stranger(told)))).toBe(id);
  });

  it('makes an account for someone of an allowed domain, in everyone, with event and audit row (AUTH-11, AUTH-48, EVENT-5)', async () => {
    const account = stranger('katherine@example.com');
    const outcome = await walk(account);
    const { orgId } = await user(admin.userId);
    const userId = (await app.events()).at(-1).payload.userId;
    const payload = { orgId, userId, email: 'katherine@example.com', fullName: 'Katherine Johnson' };
    expect((await app.events()).at(-1)).toMatchObject({
      event_type: 'userAdded',
      payload: { ...payload, syncAction: 'immediate' },
    });
    expect((await app.audit()).at(-1)).toMatchObject({
      action: 'user.created',
      org_id: orgId,
      actor_user_id: null,
      subject_id: userId,
      network: '127.0.0.1',
      details: { by: 'oidc' },
    });
    expect(await user(userId)).toMatchObject({ fullName: 'Katherine Johnson', hasLoggedIn: false });
    const { body: groups } = await admin.get(`/userGroups/users/${userId}`);
    expect(groups.map(({ type }: Json) => type)).toEqual(['everyone']);
    const events = await app.events();
    expect(await ownerOf(outcome)).toBe(userId);
    expect((await user(userId)).hasLoggedIn).toBe(true);
    expect(await walk(account)).toMatchObject({ email: 'katherine@example.com' });
    expect(await app.events()).toEqual(events);
  });

  it.each([
    ['in other letters', 'New1@Example.COM', 'new1@example.com'],
    ['configured in other letters', 'new2@other.example', 'new2@other.example'],
    ['in its own letters', 'new3@bücher.example', 'new3@xn--bcher-kva.example'],
  ])('makes one for an allowed domain %s (AUTH-48, USER-9)', async (_, told, email) => {
    expect(await walk(stranger(told))).toMatchObject({ email });
    expect(await users()).toContain(email);
  });

  it.each([
    'x@sub.example.com',
    'x@example.com.evil.example',
    'x@notexample.com',
    'x@example.co',
    'x@com',
    'x@bucher.example',
    'x@elsewhere.example',
    'example.com@elsewhere.example',
  ])('tells of no_account for the unknown %s, and writes nothing (AUTH-48)', async (email) => {
    const before = storedRows(app);
    const { error } = await walk(stranger(email));
    expect(error).toBe(email === 'x@com' ? 'email_not_verified' : 'no_account');
    expect(storedRows(app)).toEqual(before);
  });

  it.each([
    ['with control characters', 'Eve\r\nBcc: x@y.example'],
    ['with a direction override', 'Eve\u202eevE'],
    ['of 300 characters', 'E'.repeat(300)],
    ['of spaces', '   '],
    ['that is empty', ''],
    ['that is no text', { given: 'Eve' }],
    ['that is missing', undefined],
  ])('takes the local part for a name %s (AUTH-48, USER-13)', async (kind, name) => {
    const email = `named-${kind.replace(/\W/g, '')}@example.com`;
    await walk(stranger(email, { name }));
    const event = (await app.events()).at(-1);
    expect(event.payload).toMatchObject({ email, fullName: email.split('@')[0] });
  });

  it('takes a name of 255 characters, trimmed (USER-13)', async () => {
    const name = '字'.repeat(255);
    await walk(stranger('long-name@example.com', { name: ` ${name} ` }));
    expect((await app.events()).at(-1).payload.fullName).toBe(name);
  });

  it('tells of no_account for a deleted user who comes by another address of an allowed domain, until invited (AUTH-72)', async () => {
    const user = stranger('gone@example.com');
    const goneId = await ownerOf(await walk(user));
    await admin.delete(`/users/${goneId}`);
    const before = await users();
    for (const email of ['gone.again@example.com', 'gone@other.example']) {
      expect(await walk({ ...user, email })).toEqual({ error: 'no_account' });
    }
    expect(await users()).toEqual(before);
    const id = await newUser('gone.again@example.com');
    const again = { ...user, email: 'gone.again@example.com' };
    expect(await ownerOf(await walk(again))).toBe(id);
    expect(await ownerOf(await walk({ ...again, email: 'gone@other.example' }))).toBe(id);
    const other = stranger('restored@example.com');
    const otherId = await ownerOf(await walk(other));
    await admin.delete(`/users/${otherId}`);
    await admin.post(`/users/${otherId}/restore`);
    expect(await ownerOf(await walk(other))).toBe(otherId);
  });

  it('tells of no_account for someone deleted, linked before or not, until an administrator restores (AUTH-48)', async () => {
    const linked = stranger('leaver@example.com');
    await walk(linked);
    const id = (await app.events()).at(-1).payload.userId;
    await app.deleteUser(id);
    const before = storedRows(app);
    expect(await walk(linked)).toEqual({ error: 'no_account' });
    expect(await walk(stranger('leaver@example.com'))).toEqual({ error: 'no_account' });
    expect({ ...storedRows(app) }).toEqual(before);
    expect((await admin.post(`/users/${id}/restore`)).status).toBe(200);
    // The address may belong to another person meanwhile: the first to come is linked again.
    expect(await ownerOf(await walk(stranger('leaver@example.com')))).toBe(id);
    expect(await walk(linked)).toEqual({ error: 'no_account' });
  });

  it('tells of no_account for a second subject with the same address (AUTH-55)', async () => {
    const id = await newUser('shared@example.com');
    const first = stranger('shared@example.com');
    await walk(first);
    expect(await walk(stranger('shared@example.com'))).toEqual({ error: 'no_account' });
    expect(await ownerOf(await walk(first))).toBe(id);
  });

  it('lets one of two subjects have an address that both come with at once (AUTH-55)', async () => {
    const both = [stranger('both@example.com'), stranger('both@example.com')];
    holdUntil(app.services.db, 'transaction', 2);
    const outcomes = await Promise.all(both.map(walk));
    expect(outcomes.map((one) => Object.keys(one).toString()).toSorted()).toEqual(['error', 'oidc,email']);
    expect((await users()).filter((email: string) => email === 'both@example.com')).toHaveLength(1);
  });

  it('links no one by an unverified address, but by the last verified one (ADDRESS-6, AUTH-49, AUTH-55)', async () => {
    const member = await app.member(admin, 'victim@example.com');
    const token = await member.token({ scopes: ['user:write'] });
    const thief = stranger('thief@example.com');
    expect((await token.patch(`/users/${member.userId}/email`, { email: 'thief@example.com' })).status).toBe(200);
    const outcome = await walk(stranger('victim@example.com'));
    expect(outcome).toMatchObject({ email: 'thief@example.com' });
    expect(await ownerOf(outcome)).toBe(member.userId);
    expect(await ownerOf(await walk(thief))).not.toBe(member.userId);
    expect(await user(member.userId)).toMatchObject({
      email: 'victim@example.com',
      emailVerifiedAt: expect.any(String),
    });
  });

  it('links by an address that a token set once it is confirmed, and no more by the one before (AUTH-50, AUTH-55)', async () => {
    const member = await app.member(admin, 'old@example.com');
    const token = await member.token({ scopes: ['user:write'] });
    await token.patch(`/users/${member.userId}/email`, { email: 'fresh@example.com' });
    expect((await admin.post('/userAccount/email/confirm', { userId: member.userId })).status).toBe(200);
    expect(await ownerOf(await walk(stranger('fresh@example.com')))).toBe(member.userId);
    expect(await walk(stranger('old@elsewhere.example'))).toEqual({ error: 'no_account' });
  });

  it('gives no one more rights than before (AUTH-29, AUTH-48)', async () => {
    const groupsOf = async (id: string) => (await admin.get(`/userGroups/users/${id}`)).body;
    const member = await app.member(admin, 'member@example.com');
    await app.promote((await app.member(admin, 'boss@example.com')).userId);
    for (const [email, status] of [
      ['member@example.com', 403],
      ['boss@example.com', 200],
    ] as const) {
      const { body } = await showTicket(app, await walk(stranger(email)));
      expect((await app.with(body.accessToken).get(`/users/${member.userId}/adminCheck`)).status).toBe(status);
    }
    expect((await groupsOf(member.userId)).map(({ type }: Json) => type)).toEqual(['everyone']);
  });

  it('leaves the field jitEnabled of initAuth at false (AUTH-48)', async () => {
    const { body, headers } = await app.anonymous.post('/userAccount/initAuth', {});
    const startUrl = startUrlOf(headers.get('x-session-token') ?? '');
    expect([body.jitEnabled, body.authProviders]).toEqual([false, { oidc: { startUrl } }]);
  });
});
