import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { drips, HandmadeProvider, says, saysMuch, saysNothing } from '../../test/support/handmade-provider.ts';
import { TestClock } from '../../test/support/test-clock.ts';
import { hour, second } from '../base/clock.ts';
import { Secret } from '../base/secret.ts';
import { type EmailTrust, type OidcClient, OidcError } from './oidc.ts';
import { openOidc } from './open-oidc.ts';

const redirectUri = 'https://keys.example.com/api/v1/userAccount/oidc/callback';
const timeoutSeconds = 0.5;
const mebibyte = 1_048_576;

describe('the client of a provider of OpenID Connect', () => {
  const clock = new TestClock();
  let provider: HandmadeProvider;

  beforeAll(async () => {
    provider = await HandmadeProvider.start(() => clock.now());
  });
  afterAll(() => provider.stop());
  afterEach(() => {
    provider.faults = {};
  });

  const settingsAt = (issuer: string, emailTrust: EmailTrust = 'claim') => ({
    issuer,
    emailTrust,
    changedAtMs: null,
    clientId: 'latchkey',
    clientSecret: new Secret('s:e/c ret'),
    allowedDomains: [],
    groupIds: [],
  });
  const open = () => openOidc(settingsAt(provider.issuer), { clock, timeoutSeconds });

  /** Goes to a provider and comes back with a code, without a browser. */
  async function comeBack(client: OidcClient, at = provider, query: Record<string, string> = {}) {
    const { url, flow } = await client.begin(redirectUri);
    at.nonce = flow.nonce;
    const back = new URL(redirectUri);
    back.search = String(new URLSearchParams({ code: 'a-code', state: flow.state, ...query }));
    return { url: new URL(url), flow, identity: await client.finish(back, flow) };
  }
  const failure = (client = open()) =>
    comeBack(client).then(
      () => 'nothing was wrong',
      (error) => (error instanceof OidcError ? error.message : error),
    );

  it('sends there with PKCE, state and nonce, and proves who it is with what it remembers (AUTH-48, AUTH-56)', async () => {
    const { url, flow, identity } = await comeBack(open());
    expect(url.origin + url.pathname).toBe(`${provider.issuer}/authorize`);
    expect(Object.fromEntries(url.searchParams)).toEqual({
      client_id: 'latchkey',
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
      nonce: flow.nonce,
      redirect_uri: redirectUri,
      response_type: 'code',
      scope: 'openid email profile',
      state: flow.state,
    });
    expect(Object.fromEntries(provider.tokenRequest?.body ?? [])).toEqual({
      code: 'a-code',
      code_verifier: flow.verifier,
      grant_type: 'authorization_code',
      redirect_uri: redirectUri,
    });
    const basic = Buffer.from('latchkey:s%3Ae%2Fc+ret').toString('base64');
    expect(provider.tokenRequest?.authorization).toBe(`Basic ${basic}`);
    const { issuer } = provider;
    const who = { subject: 'subject-1', email: 'ada@example.com', addressProblem: null, name: 'Ada' };
    expect(identity).toEqual({ issuer, ...who });
  });

  it('never uses a state, a nonce or a verifier twice (AUTH-56)', async () => {
    const client = open();
    const flows = await Promise.all(Array.from({ length: 20 }, async () => (await client.begin(redirectUri)).flow));
    expect(new Set(flows.flatMap(({ state, nonce, verifier }) => [state, nonce, verifier])).size).toBe(60);
  });

  it('proves who it is in the body where the provider takes nothing else', async () => {
    provider.faults = { description: { token_endpoint_auth_methods_supported: ['client_secret_post'] } };
    await comeBack(open());
    expect(provider.tokenRequest?.authorization).toBeUndefined();
    expect(provider.tokenRequest?.body.get('client_secret')).toBe('s:e/c ret');
  });

  it('takes an issuer whose path ends with a slash as it is (AUTH-48)', async () => {
    const other = await HandmadeProvider.start(() => clock.now(), '/application/o/latchkey/');
    const { identity } = await comeBack(openOidc(settingsAt(other.issuer), { clock }), other);
    expect(identity.issuer).toBe(other.issuer);
    await other.stop();
  });

  const nowSeconds = () => Math.floor(clock.now() / second);
  const unsigned = (good: string) => {
    const [, claims = ''] = good.split('.');
    return `${Buffer.from('{"alg":"none"}').toString('base64url')}.${claims}.`;
  };
  const bent = (good: string) => good.replace(/.(?=.{20}$)/, (letter) => (letter === 'A' ? 'B' : 'A'));
  const otherClaims = (good: string) => {
    const [header, , signature] = good.split('.');
    const claims = JSON.parse(Buffer.from(good.split('.')[1] ?? '', 'base64url').toString());
    const made = { ...claims, email: 'victim@example.com' };
    return `${header}.${Buffer.from(JSON.stringify(made)).toString('base64url')}.${signature}`;
  };

  it.each<[string, HandmadeProvider['faults'], string]>([
    ['is signed with another key', { isForged: true }, 'signature verification failed'],
    ['has a bent signature', { idToken: bent }, 'signature verification failed'],
    ['says other than what was signed', { idToken: otherClaims }, 'signature verification failed'],
    ['names a key that is not published', { header: { kid: 'two' } }, 'no applicable keys'],
    ['has alg none', { idToken: unsigned }, '"alg"'],
    ['is no JWT', { idToken: () => 'x' }, 'Invalid JWT'],
    ['is missing', { idToken: () => undefined }, '"id_token"'],
    ['has another issuer', { claims: { iss: 'https://other.example.com' } }, '"iss"'],
    ['has no issuer', { claims: { iss: undefined } }, '"iss"'],
    ['has another audience', { claims: { aud: 'somebody-else' } }, '"aud"'],
    ['has one more audience', { claims: { aud: ['latchkey', 'somebody-else'] } }, 'additional untrusted audiences'],
    ['is for somebody else to use', { claims: { aud: ['latchkey', 'else'], azp: 'else' } }, '"azp"'],
    ['is for somebody else to use, by the one audience', { claims: { azp: 'else' } }, '"azp"'],
    ['is for no text to use', { claims: { azp: ['latchkey'] } }, '"azp"'],
    ['has no audience', { claims: { aud: undefined } }, '"aud"'],
    ['has another nonce', { claims: { nonce: 'another' } }, '"nonce"'],
    ['has no nonce', { claims: { nonce: undefined } }, '"nonce"'],
    ['has expired', { claims: { exp: 1 } }, '"exp"'],
    ['does not expire', { claims: { exp: undefined } }, '"exp"'],
    ['has no time of issue', { claims: { iat: undefined } }, '"iat"'],
    ['has no subject', { claims: { sub: undefined } }, '"sub"'],
    ['has a subject that is no text', { claims: { sub: 7 } }, '"sub"'],
  ])('refuses an ID token that %s (AUTH-48)', async (_, faults, said) => {
    provider.faults = faults;
    expect(await failure()).toContain(said);
  });

  it('counts times by our own clock, 30 seconds more or less (AUTH-48)', async () => {
    const outcomes: boolean[] = [];
    for (const [name, ahead] of [
      ['exp', -25],
      ['exp', -40],
      ['iat', 25],
      ['iat', 40],
      ['nbf', 40],
    ] as const) {
      provider.faults = { claims: { [name]: nowSeconds() + ahead } };
      outcomes.push((await failure()) === 'nothing was wrong');
    }
    expect(outcomes).toEqual([true, false, true, false, false]);
  });

  it.each<[string, Record<string, string>]>([
    ['another state', { state: 'another' }],
    ['an empty state', { state: '' }],
    ['another issuer', { iss: 'https://other.example.com' }],
    ['an error', { error: 'server_error' }],
  ])('refuses %s in the address that leads back, without asking for tokens (AUTH-56)', async (_, query) => {
    const client = open();
    await client.check();
    const askedBefore = provider.asked.length;
    await expect(comeBack(client, provider, query)).rejects.toBeInstanceOf(OidcError);
    expect(provider.asked.slice(askedBefore)).not.toContain('token');
  });

  const bare = { email: undefined, email_verified: undefined, name: undefined };

  it('asks for the address where the ID token does not tell it (AUTH-48)', async () => {
    provider.faults = { claims: bare, userinfo: { email: 'g@example.com', email_verified: true, name: 'Grace' } };
    const { identity } = await comeBack(open());
    expect(identity).toMatchObject({ email: 'g@example.com', addressProblem: null, name: 'Grace' });
  });

  it('does not ask where it is told', async () => {
    const askedBefore = provider.asked.length;
    await comeBack(open());
    expect(provider.asked.slice(askedBefore)).toEqual(['discovery', 'token', 'jwks']);
  });

  it('takes an address and whether it is verified from one place (AUTH-48)', async () => {
    provider.faults = { claims: { ...bare, email: 'g@example.com' }, userinfo: { email: 'x@example.com' } };
    expect((await comeBack(open())).identity).toMatchObject({
      email: 'x@example.com',
      addressProblem: '"email_verified" is missing, and emailTrust is "claim"',
    });
    provider.faults = { claims: { ...bare, email_verified: true }, userinfo: { email: 'x@example.com' } };
    expect((await comeBack(open())).identity).toMatchObject({ email: null });
  });

  it('refuses what is told of another subject (AUTH-48)', async () => {
    provider.faults = { claims: bare, userinfo: { sub: 'another', email: 'g@example.com', email_verified: true } };
    expect(await failure()).toContain('sub');
  });

  it.each<[unknown, string | null]>([
    [true, null],
    ['true', null],
    ['True', 'not true'],
    ['false', 'not true'],
    [false, 'not true'],
    [1, 'not true'],
    ['yes', 'not true'],
    [null, 'not true'],
    [undefined, 'missing'],
  ])('with emailTrust claim, email_verified %j counts as verified or says why not (FIT-1)', async (given, said) => {
    provider.faults = { claims: { email_verified: given }, userinfo: { email: 'ada@example.com' } };
    const problem = said && `"email_verified" is ${said}, and emailTrust is "claim"`;
    expect((await comeBack(open())).identity.addressProblem).toBe(problem);
  });

  describe('with emailTrust issuer', () => {
    const trusting = () => openOidc(settingsAt(provider.issuer, 'issuer'), { clock, timeoutSeconds });

    it.each([[undefined], [false], ['false'], [null]])(
      'every address counts, with email_verified %j, and the ID token suffices (FIT-1)',
      async (email_verified) => {
        const asked = provider.asked.length;
        provider.faults = { claims: { email_verified } };
        expect((await comeBack(trusting())).identity).toMatchObject({ email: 'ada@example.com', addressProblem: null });
        expect(provider.asked.slice(asked)).not.toContain('userinfo');
      },
    );

    it('an address that only the userinfo endpoint states counts as well (FIT-1)', async () => {
      provider.faults = { claims: bare, userinfo: { email: 'g@example.com' } };
      expect((await comeBack(trusting())).identity).toMatchObject({ email: 'g@example.com', addressProblem: null });
    });

    it.each([
      ['preferred_username', 'ada@example.com'],
      ['upn', 'ada@example.com'],
      ['emails', ['ada@example.com']],
    ])('%s is no address, and the reason names it (FIT-5)', async (name, value) => {
      const claims = { [name]: value };
      provider.faults = { claims: { ...bare, ...claims }, userinfo: claims };
      const { identity } = await comeBack(trusting());
      expect(identity.email).toBeNull();
      expect(identity.addressProblem).toBe(
        `the provider states no "email", and "${name}" is no address that it vouches for: let it send one`,
      );
    });

    it('a list of addresses is none (FIT-5)', async () => {
      const claims = { email: ['ada@example.com'] };
      provider.faults = { claims, userinfo: claims };
      expect((await comeBack(trusting())).identity).toMatchObject({
        email: null,
        addressProblem: 'the claim "email" is no text',
      });
    });
  });

  it.each([
    ['alone', { aud: ['latchkey'] }],
    ['with others, as the authorized party', { aud: ['latchkey', 'else'], azp: 'latchkey' }],
  ])('takes a list of audiences that names this client %s (FIT-6)', async (_, claims) => {
    provider.faults = { claims };
    expect(await failure()).toBe('nothing was wrong');
  });

  describe('an issuer that is not stated as it is configured (FIT-6)', () => {
    it.each([
      ['with a slash', (issuer: string) => `${issuer}/`],
      ['of another version', (issuer: string) => `${issuer}/v2.0`],
    ])('%s: the reason names both', async (_, stated) => {
      const other = await HandmadeProvider.start(() => clock.now(), '/realms/a');
      other.faults = { description: { issuer: stated(other.issuer) } };
      const client = openOidc(settingsAt(other.issuer), { clock });
      await expect(comeBack(client, other)).rejects.toThrow(
        `it states the issuer ${stated(other.issuer)}, and ${other.issuer} is configured: set the stated one, exactly`,
      );
      await other.stop();
    });

    it('as a template of many tenants: the reason says so', async () => {
      provider.faults = { description: { issuer: `${provider.issuer}/{tenantid}/v2.0` } };
      expect(await failure()).toContain('it stands for many organizations');
    });
  });

  describe('the text of a refusal (FIT-4)', () => {
    it.each<[string, Parameters<typeof says>, string]>([
      [
        'in the body',
        [400, JSON.stringify({ error: 'invalid_grant', error_description: 'Code not valid' })],
        'the provider answers 400 invalid_grant: Code not valid',
      ],
      [
        'in the body of a challenge',
        [401, '{"error":"invalid_client","error_description":"Bad secret"}', { 'www-authenticate': 'Basic realm="a"' }],
        'the provider answers 401 invalid_client: Bad secret',
      ],
      [
        'in a challenge',
        [401, '', { 'www-authenticate': 'Bearer error="invalid_token", error_description="It expired"' }],
        'the provider answers 401 invalid_token: It expired',
      ],
      ['of no kind', [500, '{}'], 'OAUTH_RESPONSE_IS_NOT_CONFORM: unexpected HTTP response status code (status 500)'],
    ])('is that of the provider, %s', async (_, response, said) => {
      provider.faults = { at: { token: says(...response) } };
      expect(await failure()).toBe(said);
    });

    it('is on one line, of 300 characters at most, without secret, code, verifier or state', async () => {
      const client = open();
      const { url, flow } = await client.begin(redirectUri);
      const secrets = ['s:e/c ret', encodeURIComponent('s:e/c ret'), 'a-code', flow.verifier, flow.state];
      const text = `a\r\nb\u202ec ${secrets.join(' ')} ${'x'.repeat(1_000)}`;
      provider.faults = {
        at: { token: says(400, JSON.stringify({ error: 'invalid_grant', error_description: text })) },
      };
      const back = new URL(redirectUri);
      back.search = String(new URLSearchParams({ code: 'a-code', state: flow.state }));
      const said = await client.finish(back, flow).catch((error) => error.message);
      expect(url).toContain(flow.state);
      expect(said).toMatch(/^the provider answers 400 invalid_grant: a b c \[secret\]( \[secret\]){4} x+$/);
      expect(said).toHaveLength(300);
    });

    it.each<[HandmadeProvider['faults'], string]>([
      [{ claims: { iss: 'https://other.example.com' } }, 'it states "https://other.example.com", expected is "http'],
      [{ claims: { aud: 'other' } }, 'it states "other", expected is "latchkey"'],
      [{ claims: { exp: 1 } }, 'it states 1970-01-01T00:00:01.000Z, and the time here is '],
    ])('names what was compared', async (faults, said) => {
      provider.faults = faults;
      expect(await failure()).toContain(said);
    });
  });

  const places = ['discovery', 'jwks', 'token', 'userinfo'] as const;
  const outside = 'http://127.0.0.1:1/elsewhere';

  describe.each(places)('where the provider is bad at %s', (place) => {
    const atUserinfo = place === 'userinfo' ? { claims: bare } : {};

    it.each<[string, Parameters<typeof says>]>([
      ['500', [500, '{}']],
      ['404 with HTML', [404, '<html>', { 'content-type': 'text/html' }]],
      ['HTML', [200, '<html>', { 'content-type': 'text/html' }]],
      ['what is no JSON', [200, '{']],
      ['a list', [200, '[]']],
      ['null', [200, 'null']],
      ['nothing', [200, '']],
      ['a redirect', [302, '', { location: outside }]],
      ['another redirect', [307, '', { location: outside }]],
      ['204', [204, '']],
    ])('refuses %s in our own words', async (_, response) => {
      provider.faults = { ...atUserinfo, at: { [place]: says(...response) } };
      const said = await failure();
      expect(said).toEqual(expect.any(String));
      expect(said).not.toBe('nothing was wrong');
      expect(said).not.toMatch(/[\r\n]|s:e\/c ret|access-token-of/);
    });

    it('reads no more of 50 MB than a megabyte or so', async () => {
      let sent = 0;
      provider.faults = {
        ...atUserinfo,
        at: {
          [place]: saysMuch(50 * mebibyte, (bytes) => {
            sent = bytes;
          }),
        },
      };
      expect(await failure(openOidc(settingsAt(provider.issuer), { clock }))).toContain('larger than a megabyte');
      expect(sent).toBeLessThan(10 * mebibyte);
    });

    it.each([
      ['says nothing', saysNothing],
      ['drips', drips(50)],
    ])('waits no longer than it may where the provider %s', async (_, response) => {
      provider.faults = { ...atUserinfo, at: { [place]: response } };
      expect(await failure()).toContain('timed out');
    });

    it('says so where the connection is cut', async () => {
      provider.faults = { ...atUserinfo, at: { [place]: (response: ServerResponse) => response.destroy() } };
      expect(await failure()).not.toBe('nothing was wrong');
    });
  });

  it('waits ten seconds for each request unless told otherwise', async () => {
    const timeouts = vi.spyOn(AbortSignal, 'timeout');
    provider.faults = { claims: bare };
    await comeBack(openOidc(settingsAt(provider.issuer), { clock }));
    expect(timeouts.mock.calls).toEqual([[10_000], [10_000], [10_000], [10_000]]);
    timeouts.mockRestore();
  });

  it('unpacks no more than a megabyte', async () => {
    const bomb = gzipSync(Buffer.alloc(20 * mebibyte, ' '));
    const head = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    provider.faults = { at: { discovery: (response) => response.writeHead(200, head).end(bomb) } };
    expect(await failure()).toContain('larger than a megabyte');
  });

  it.each<[string, Record<string, unknown>]>([
    ['another issuer', { issuer: 'https://other.example.com' }],
    ['no issuer', { issuer: undefined }],
    ['no place for tokens', { token_endpoint: undefined }],
    ['no keys', { jwks_uri: undefined }],
  ])('refuses a description with %s (AUTH-48)', async (_, description) => {
    provider.faults = { description };
    expect(await failure()).not.toBe('nothing was wrong');
  });

  it('keeps a description for an hour, one that could not be had not at all, and asks anew to check', async () => {
    const client = open();
    const count = () => provider.asked.filter((place) => place === 'discovery').length;
    provider.faults = { at: { discovery: says(500, '{}') } };
    await expect(client.begin(redirectUri)).rejects.toBeInstanceOf(OidcError);
    provider.faults = {};
    const before = count();
    await Promise.all([client.begin(redirectUri), client.begin(redirectUri)]);
    clock.advance(hour);
    await client.begin(redirectUri);
    expect(count()).toBe(before + 1);
    clock.advance(1);
    await client.begin(redirectUri);
    expect(count()).toBe(before + 2);
    provider.faults = { at: { discovery: says(500, '{}') } };
    await expect(client.check()).rejects.toBeInstanceOf(OidcError);
    await client.begin(redirectUri);
  });

  it('says that no one is there', async () => {
    const gone = await HandmadeProvider.start(() => clock.now());
    await gone.stop();
    await vi.waitFor(() => expect(failure(openOidc(settingsAt(gone.issuer), { clock }))).resolves.toContain('failed'));
  });
});
