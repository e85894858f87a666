import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Browser, outcomeOf } from '../../../test/support/browser.ts';
import { allowOidc, callbackUrl, OidcServer, type OidcUser, RunningClock } from '../../../test/support/oidc-server.ts';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

const verified = { email_verified: true };

describe('GET /userAccount/oidc/callback, in the log', () => {
  const clock = new RunningClock();
  let provider: OidcServer;
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    provider = await OidcServer.start();
    app = await TestApp.start(provider.environment, clock);
    admin = await app.setUp();
    await allowOidc(admin);
  });
  afterAll(async () => {
    await app.close();
    await provider.stop();
  });

  /** The last refusal in the log. */
  const logged = () => {
    const line = app.logLines.findLast((one) => one.includes('single sign-on refused')) ?? '{}';
    const { level, error, cause, requestId } = JSON.parse(line);
    return { level, error, cause, hasRequestId: typeof requestId === 'string' };
  };
  const refusal = (error: string, cause: unknown) => ({ level: 40, error, cause, hasRequestId: true });

  it.each<[string, OidcUser, string, string]>([
    ['no address', { sub: 'a' }, 'email_not_verified', 'the provider states no "email": let it send one'],
    [
      'an address as Entra ID states it',
      { sub: 'b', email: 'ada@example.com' },
      'email_not_verified',
      '"email_verified" is missing, and emailTrust is "claim"',
    ],
    [
      'an unverified address',
      { sub: 'c', email: 'ada@example.com', email_verified: false },
      'email_not_verified',
      '"email_verified" is not true, and emailTrust is "claim"',
    ],
    [
      'an address that no one can have',
      { sub: 'd', email: 'no address', ...verified },
      'email_not_verified',
      'the address is not one that can be stored as it is spelled',
    ],
    [
      'an unknown domain',
      { sub: 'e', email: 'e@elsewhere.example', ...verified },
      'no_account',
      'no account has this address, and its domain is not in allowedDomains',
    ],
  ])('%s: at warn, which check failed (FIT-4)', async (_, user, ...[error, cause]) => {
    expect(outcomeOf(await provider.walk(app, user))).toEqual({ error });
    expect(logged()).toEqual(refusal(error, cause));
  });

  it('a deleted user, and one whose address is linked (AUTH-55, AUTH-72, FIT-4)', async () => {
    const user = { sub: 'first', email: 'first@example.com', ...verified };
    await provider.walk(app, user);
    await provider.walk(app, { ...user, sub: 'second' });
    const taken = 'the account with this address is linked to another user of the provider';
    expect(logged()).toEqual(refusal('no_account', taken));
    await app.deleteUser((await app.events()).at(-1).payload.userId);
    await provider.walk(app, user);
    const gone = 'the user is deleted, and no other account has this address';
    expect(logged()).toEqual(refusal('no_account', gone));
    await provider.walk(app, { ...user, sub: 'third' });
    expect(logged()).toEqual(refusal('no_account', 'the account with this address is deleted'));
  });

  it("the provider's own error, cleaned, only for a browser that was sent there (FIT-4)", async () => {
    const browser = new Browser(app);
    const back = new URL(await provider.signIn(browser, { sub: 'f' }));
    const state = back.searchParams.get('state') ?? '';
    const error_description = 'AADSTS65004:\r\nUser declined\u202e';
    const denied = (given: string) => {
      const query = new URLSearchParams({ error: 'access_denied', error_description, state: given });
      return `${callbackUrl}?${query.toString()}`;
    };
    await new Browser(app).open(denied(state));
    expect(logged()).toEqual(refusal('access_denied', 'the browser sent no cookie of a sign-in'));
    await browser.open(denied(state));
    expect(logged()).toEqual(
      refusal('access_denied', 'the provider answers access_denied: AADSTS65004: User declined'),
    );
  });

  it('a return that belongs to no sign-in (FIT-4)', async () => {
    const browser = new Browser(app);
    const back = await provider.signIn(browser, { sub: 'g' });
    await browser.open(back.replace(/state=[^&]+/, 'state=another'));
    expect(logged()).toEqual(refusal('expired', '"state" is that of another sign-in'));
    clock.advance(600_001);
    await browser.open(back);
    expect(logged()).toEqual(refusal('expired', 'the cookie of the sign-in is not valid, or expired'));
    clock.advance(-600_001);
  });

  it('a code that the provider refuses, without the code (FIT-4)', async () => {
    const browser = new Browser(app);
    const back = await provider.signIn(browser, { sub: 'h' });
    await browser.open(back.replace(/code=[^&]+/, 'code=made-up-code-4711'));
    expect(logged()).toEqual(refusal('failed', expect.stringMatching(/^the provider answers 400 invalid_grant: /)));
    expect(app.logLines.join()).not.toContain('made-up-code-4711');
  });

  it('a client secret that the provider refuses, without the secret (FIT-4)', async () => {
    const wrong = { ...provider.environment, OIDC_CLIENT_SECRET: 'wrong-secret-4711' };
    const other = await TestApp.start(wrong, clock);
    await allowOidc(await other.setUp());
    expect(outcomeOf(await provider.walk(other, { sub: 'i' }))).toEqual({ error: 'failed' });
    const lines = other.logLines.join();
    expect(lines).toContain('the provider answers 401 invalid_client: ');
    expect(lines).not.toContain('wrong-secret-4711');
    await other.close();
  });

  it('with OIDC_EMAIL_TRUST issuer the address of Entra ID signs in; "true" as text does anyway (FIT-1)', async () => {
    const environment = { ...provider.environment, OIDC_EMAIL_TRUST: 'issuer' };
    const trusting = await TestApp.start(environment, clock);
    await allowOidc(await trusting.setUp());
    const user = { sub: 'j', email: 'j@example.com' };
    expect(outcomeOf(await provider.walk(trusting, user))).toMatchObject({ email: 'j@example.com' });
    await trusting.close();
    const asText = await provider.walk(app, { ...user, email_verified: 'true' }, { atUserinfo: true });
    expect(outcomeOf(asText)).toMatchObject({ email: 'j@example.com' });
  });
});
