import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compactJwt, hmac, type JwtPart, type Signer } from '../../test/support/jwt.ts';
import { TestClock } from '../../test/support/test-clock.ts';
import { day, second } from '../base/clock.ts';
import { ApiError } from '../base/errors.ts';
import { Secret } from '../base/secret.ts';
import { scopedTokenReader } from './scoped-tokens.ts';

const shared = 'what-the-tests-and-the-reader-share-4711';
const clock = new TestClock();
const nowSeconds = Math.floor(clock.now() / second);
const good = { scopes: ['USER_LOOKUP'], exp: nowSeconds + 3_600 };
const header = { alg: 'HS256', typ: 'JWT' };

/** The scopes of a header's token, or the refusal. */
async function read(
  authorization: string | undefined,
  secret: string | null = shared,
  isDeleted = false,
): Promise<string> {
  const reader = scopedTokenReader({
    secret: () => (secret === null ? null : new Secret(secret)),
    clock,
    find: async () => null,
    isOrganizationDeleted: async () => isDeleted,
  });
  return reader(authorization).then(
    ({ kind, scopes }) => `${kind}: ${[...scopes].join(' ')}`,
    (error: unknown) => (error instanceof ApiError ? error.errorName : String(error)),
  );
}

const readToken = (claims: JwtPart, head: JwtPart = header, signer: Signer = hmac(shared)) =>
  read(`Bearer ${compactJwt(head, claims, signer)}`);

describe('a scoped token that a service signed itself (SERVICE-13, SERVICE-14)', () => {
  it.each([
    ['one scope', ['USER_LOOKUP'], 'USER_LOOKUP'],
    ['every scope', ['USER_LOOKUP', 'FETCH_CONFIG', 'EVENTS_READ', 'TOKEN_INTROSPECT'], ''],
    ['the second spellings', ['user:lookup', 'fetch:config'], 'USER_LOOKUP FETCH_CONFIG'],
    ['both spellings of one', ['user:lookup', 'USER_LOOKUP'], 'USER_LOOKUP'],
    ['none', [], undefined],
    ['an unknown one', ['ADMIN'], 'ADMIN'],
    ['other letters', ['user_lookup', 'User:Lookup', 'USER:LOOKUP'], 'user_lookup User:Lookup USER:LOOKUP'],
    ['spellings that nobody accepts', ['events:read', 'token:introspect'], 'events:read token:introspect'],
    ['two in one text', ['USER_LOOKUP FETCH_CONFIG'], 'USER_LOOKUP FETCH_CONFIG'],
    ['names that every object has', ['constructor', 'toString', '__proto__'], 'constructor toString __proto__'],
  ])('is read with %s', async (_, scopes, expected) => {
    const names = expected === undefined ? '' : expected || scopes.join(' ');
    expect(await readToken({ ...good, scopes })).toBe(`service: ${names}`);
  });

  it('two names in one text are one name, and that no one asks for (SERVICE-3)', async () => {
    const reader = scopedTokenReader({
      secret: () => new Secret(shared),
      clock,
      find: async () => null,
      isOrganizationDeleted: async () => false,
    });
    const token = compactJwt(header, { ...good, scopes: ['USER_LOOKUP FETCH_CONFIG'] }, hmac(shared));
    expect((await reader(`Bearer ${token}`)).scopes.has('USER_LOOKUP')).toBe(false);
  });

  it.each([
    ['a text that is the name', 'USER_LOOKUP'],
    ['a text that contains the name', 'x USER_LOOKUP y'],
    ['a list in a text', '["USER_LOOKUP"]'],
    ['an object', { 0: 'USER_LOOKUP', length: 1 }],
    ['true', true],
    ['null', null],
    ['nothing', undefined],
    ['a number in the list', ['USER_LOOKUP', 7]],
    ['null in the list', ['USER_LOOKUP', null]],
    ['a list in the list', [['USER_LOOKUP']]],
  ])('grants nothing: scopes is %s (T4, SERVICE-3)', async (_, scopes) => {
    expect(await readToken({ ...good, scopes })).toBe('service: ');
  });

  it.each(['scope', 'Scopes', 'scp', 'permissions'])('grants nothing: the list is called %s', async (name) => {
    expect(await readToken({ exp: good.exp, [name]: ['USER_LOOKUP'] })).toBe('service: ');
  });

  it.each([
    ['in 1 second', nowSeconds + 1, 'service: USER_LOOKUP'],
    ['in 24 hours', nowSeconds + day / second, 'service: USER_LOOKUP'],
    ['in 24 hours and 1 second', nowSeconds + day / second + 1, 'tokenInvalid'],
    ['in a fraction more than 24 hours', nowSeconds + day / second + 0.5, 'tokenInvalid'],
    ['in milliseconds', clock.now() + 3_600_000, 'tokenInvalid'],
    ['in the year 9999', 253_402_300_799, 'tokenInvalid'],
    ['now', nowSeconds, 'tokenExpired'],
    ['a second ago', nowSeconds - 1, 'tokenExpired'],
    ['in 1970', 0, 'tokenExpired'],
    ['before 1970', -1, 'tokenExpired'],
    ['a text', String(nowSeconds + 3_600), 'tokenInvalid'],
    ['null', null, 'tokenInvalid'],
    ['absent', undefined, 'tokenInvalid'],
    ['a list', [nowSeconds + 3_600], 'tokenInvalid'],
    ['true', true, 'tokenInvalid'],
  ])('exp is %s: %s → %s (T4)', async (_, exp, expected) => {
    expect(await readToken({ ...good, exp })).toBe(expected);
  });

  it.each(['1e999', '-1e999', '1e308', '"1e999"'])('exp is %s, as no serializer writes it (T4)', async (exp) => {
    const parts = [JSON.stringify(header), `{"scopes":["USER_LOOKUP"],"exp":${exp}}`];
    const signed = parts.map((part) => Buffer.from(part).toString('base64url')).join('.');
    const outcome = exp.startsWith('-') ? 'tokenExpired' : 'tokenInvalid';
    expect(await read(`Bearer ${signed}.${hmac(shared)(signed)}`)).toBe(outcome);
  });

  it.each([
    ['zip', { zip: 'DEF' }],
    ['b64', { b64: false }],
    ['b64 that says nothing', { b64: true }],
  ])('tokenInvalid: a header with %s (T1)', async (_, more) => {
    const token = compactJwt({ ...header, ...more }, good, hmac(shared));
    expect(await read(`Bearer ${token}`)).toBe('tokenInvalid');
  });

  it('the day that a token may last is that of this process’s clock (HTTP-29)', async () => {
    const token = `Bearer ${compactJwt(header, { ...good, exp: nowSeconds + 86_400 }, hmac(shared))}`;
    expect(await read(token)).toBe('service: USER_LOOKUP');
    clock.advance(-second);
    expect(await read(token)).toBe('tokenInvalid');
    clock.advance(second + day);
    expect(await read(token)).toBe('tokenExpired');
    clock.advance(-day);
  });

  it.each([
    ['in the future', nowSeconds + 60, 'tokenInvalid'],
    ['now', nowSeconds, 'service: USER_LOOKUP'],
    ['past', nowSeconds - 60, 'service: USER_LOOKUP'],
    ['a text', String(nowSeconds), 'tokenInvalid'],
    ['null', null, 'tokenInvalid'],
  ])('nbf is %s: %s → %s (T4)', async (_, nbf, expected) => {
    expect(await readToken({ ...good, nbf })).toBe(expected);
  });

  const zeros = new Uint8Array(32);
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 });
  const digest =
    (name: string): Signer =>
    (signed) =>
      createHmac(name, shared).update(signed).digest('base64url');
  const publicPem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const byThief: Signer = (signed) => sign(null, Buffer.from(signed), privateKey).toString('base64url');
  const byRsa: Signer = (signed) => sign('sha256', Buffer.from(signed), rsa.privateKey).toString('base64url');

  it.each([
    ...['none', 'None', 'NONE', 'nOnE', 'none ', '', null, 0, ['none'], ['HS256']].flatMap(
      (alg): [string, JwtPart, Signer][] => [
        [`alg ${JSON.stringify(alg)} without signature`, { alg }, () => ''],
        [`alg ${JSON.stringify(alg)} with the right signature`, { alg }, hmac(shared)],
      ],
    ),
    ['no alg', {}, hmac(shared)],
    ['hs256', { alg: 'hs256' }, hmac(shared)],
    ['HS384', { alg: 'HS384' }, digest('sha384')],
    ['HS512', { alg: 'HS512' }, digest('sha512')],
    ['SHA-384 under HS256', { alg: 'HS256' }, digest('sha384')],
    ['RS256', { alg: 'RS256' }, byRsa],
    ['RS256 under HS256', { alg: 'HS256' }, byRsa],
    ['EdDSA with a key in the header', { alg: 'EdDSA', jwk: publicKey.export({ format: 'jwk' }) }, byThief],
    ['HMAC with a public key', { alg: 'HS256' }, hmac(publicPem)],
    ['another secret', { alg: 'HS256' }, hmac(`${shared}x`)],
    ['the secret in upper case', { alg: 'HS256' }, hmac(shared.toUpperCase())],
    ['the secret in base64', { alg: 'HS256' }, hmac(Buffer.from(shared).toString('base64'))],
    ['an empty secret', { alg: 'HS256' }, hmac('')],
    ['zeros', { alg: 'HS256' }, hmac(zeros)],
    ['"secret"', { alg: 'HS256' }, hmac('secret')],
    ['no signature', { alg: 'HS256' }, () => ''],
    ['an unknown crit', { alg: 'HS256', crit: ['more'], more: 1 }, hmac(shared)],
    ['an empty crit', { alg: 'HS256', crit: [] }, hmac(shared)],
    ['b64 false', { alg: 'HS256', crit: ['b64'], b64: false }, hmac(shared)],
  ] as [string, JwtPart, Signer][])('tokenInvalid: %s (T1, T2)', async (_, head, signer) => {
    expect(await readToken(good, head, signer)).toBe('tokenInvalid');
  });

  it.each(['kid', 'jku', 'x5u', 'cty'])('%s in the header leads nowhere', async (name) => {
    const head = { ...header, [name]: 'http://127.0.0.1:9/../../etc/passwd' };
    expect(await readToken(good, head)).toBe('service: USER_LOOKUP');
  });

  it('tokenInvalid: without a secret none is good, however it is signed (SERVICE-14)', async () => {
    for (const key of [shared, '', 'null', 'undefined', zeros]) {
      expect(await read(`Bearer ${compactJwt(header, good, hmac(key))}`, null)).toBe('tokenInvalid');
    }
    expect(await read(`Bearer ${compactJwt({ alg: 'none' }, good, () => '')}`, null)).toBe('tokenInvalid');
  });

  it.each([undefined, '', 'Bearer', 'Bearer ', 'Basic YTpi', 'Bearer a b'])(
    'credentialMissing: the header %j (AUTH-19)',
    async (given) => {
      expect(await read(given)).toBe('credentialMissing');
    },
  );

  const token = compactJwt(header, good, hmac(shared));
  it.each([
    ['a display prefix', `lkpat_${token}`],
    ['two parts', token.split('.').slice(0, 2).join('.')],
    ['four parts', `${token}.x`],
    ['five parts', `${token}.x.y`],
    ['padding', `${token}=`],
    ['a dot at the end', `${token}.`],
    ['dots alone', '..'],
    ['one word', 'x'],
    [
      'claims that are a list',
      [header, [good]].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.'),
    ],
    ['very many characters', `${token.split('.').slice(0, 2).join('.')}.${'x'.repeat(100_000)}`],
  ])('tokenInvalid: %s (T5)', async (_, given) => {
    const signed = given.split('.').length === 2 && given !== token.split('.').slice(0, 2).join('.');
    expect(await read(`Bearer ${signed ? `${given}.${hmac(shared)(given)}` : given}`)).toBe('tokenInvalid');
  });

  it('tokenInvalid: right in everything, but too long (T5)', async () => {
    const long = { ...good, scopes: ['USER_LOOKUP', ...Array.from({ length: 1_000 }, (_, place) => `SCOPE_${place}`)] };
    expect(await readToken(long)).toBe('tokenInvalid');
  });

  it('tokenInvalid: any other letter anywhere in a good token, spare bits of the signature included (T5)', async () => {
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=. '.split('');
    const other = fc.constantFrom(...letters);
    const at = fc.oneof(fc.integer({ min: 0, max: token.length - 1 }), fc.constant(token.length - 1));
    await fc.assert(
      fc.asyncProperty(at, other, async (place, letter) => {
        fc.pre(token[place] !== letter);
        const altered = token.slice(0, place) + letter + token.slice(place + 1);
        expect(await read(`Bearer ${altered}`)).toMatch(/^(tokenInvalid|credentialMissing)$/);
      }),
      { numRuns: 2_000 },
    );
  });
});
