import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { compactJwt, hmac, type JwtPart, type Signer } from './jwt.ts';
import { readSigningKeys } from './stored-keys.ts';
import type { TestApp } from './test-app.ts';

interface ServiceKey {
  readonly kid: string;
  readonly x: string;
  readonly publicKey: KeyObject;
  /** Signs as the service itself does. */
  readonly sign: Signer;
}

const ed25519 =
  (key: KeyObject): Signer =>
  (signed) =>
    sign(null, Buffer.from(signed), key).toString('base64url');

/** The key that a service signs with, read from where it keeps it. */
export async function serviceKey(app: TestApp): Promise<ServiceKey> {
  const stored = await readSigningKeys(app);
  const { kid, ...jwk }: { kid: string; kty: 'OKP'; crv: 'Ed25519'; x: string; d: string } = stored.keys[0];
  const key = createPrivateKey({ key: jwk, format: 'jwk' });
  return { kid, x: jwk.x, publicKey: createPublicKey(key), sign: ed25519(key) };
}

/** The signature of a good token, for tokens that say other things. */
function signatureOf(token: string): Signer {
  return () => token.split('.')[2] ?? '';
}

function unsigned(good: string): [string, JwtPart, Signer][] {
  const spellings = ['none', 'None', 'NONE', 'nOnE', 'none ', '', null, 0, ['none']];
  return spellings.flatMap((alg): [string, JwtPart, Signer][] => [
    [`alg ${JSON.stringify(alg)} without signature`, { alg, typ: 'JWT' }, () => ''],
    [`alg ${JSON.stringify(alg)} with another token's signature`, { alg }, signatureOf(good)],
  ]);
}

function confused({ kid, x, publicKey }: ServiceKey): [string, JwtPart, Signer][] {
  const spellings: [string, string | Uint8Array][] = [
    ['as PEM', publicKey.export({ type: 'spki', format: 'pem' }).toString()],
    ['as DER', publicKey.export({ type: 'spki', format: 'der' })],
    ['as JWK', JSON.stringify(publicKey.export({ format: 'jwk' }))],
    ['as bytes', Buffer.from(x, 'base64url')],
    ['as text', x],
  ];
  return spellings.map(([name, key]) => [`HMAC with the public key ${name}`, { alg: 'HS256', kid }, hmac(key)]);
}

function guessed(kid: string): [string, JwtPart, Signer][] {
  const keys: [string, string | Uint8Array][] = [
    ['nothing', ''],
    ['zeros', new Uint8Array(32)],
    ['the digit zero', '0'.repeat(32)],
    ['"secret"', 'secret'],
    ['"null"', 'null'],
    ['"undefined"', 'undefined'],
  ];
  return keys.flatMap(([name, key]): [string, JwtPart, Signer][] => [
    [`HMAC with ${name}`, { alg: 'HS256', typ: 'JWT' }, hmac(key)],
    [`HMAC with ${name} and our kid`, { alg: 'HS256', kid }, hmac(key)],
  ]);
}

function ownKey(kid: string, trapUrl: string): [string, JwtPart, Signer][] {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const byThief = ed25519(privateKey);
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'mine', alg: 'EdDSA', use: 'sig' };
  const kids = [
    '../../../../dev/null',
    "x' OR '1'='1",
    'a\0b',
    '__proto__',
    'constructor',
    'toString',
    '',
    null,
    7,
    [kid],
    { kid },
  ];
  const headers: [string, JwtPart][] = [
    ['jwk', { alg: 'EdDSA', jwk }],
    ['jwk and our kid', { alg: 'EdDSA', kid, jwk }],
    ['jku', { alg: 'EdDSA', kid: 'mine', jku: trapUrl }],
    ['x5u', { alg: 'EdDSA', kid: 'mine', x5u: trapUrl }],
    ['x5c', { alg: 'EdDSA', kid, x5c: [publicKey.export({ type: 'spki', format: 'der' }).toString('base64')] }],
    ['our kid', { alg: 'EdDSA', kid }],
    ['no kid', { alg: 'EdDSA' }],
    ['zip', { alg: 'EdDSA', kid, zip: 'DEF' }],
    ...kids.map((odd): [string, JwtPart] => [`kid ${JSON.stringify(odd)}`, { alg: 'EdDSA', kid: odd }]),
  ];
  return headers.map(([name, header]) => [`somebody's own key, by ${name}`, header, byThief]);
}

/** Headers that forbid reading the token, under a signature that is right. */
function extended(key: ServiceKey): [string, JwtPart, Signer][] {
  const { kid } = key;
  const headers: [string, JwtPart][] = [
    ['an unknown crit', { alg: 'EdDSA', kid, crit: ['exp2'], exp2: 1 }],
    ['an empty crit', { alg: 'EdDSA', kid, crit: [] }],
    ['b64 false', { alg: 'EdDSA', kid, crit: ['b64'], b64: false }],
    ['another alg', { alg: 'ES256', kid }],
    ['no alg', { kid }],
    ['another kid', { alg: 'EdDSA', kid: 'other' }],
  ];
  return headers.map(([name, header]) => [`our own signature under ${name}`, header, key.sign]);
}

/**
 * Tokens with these claims that must be rejected, by what is wrong with them.
 * @param good a token of the service, whose signature is misused
 * @param trapUrl where a verifier that follows addresses in a token would go
 */
export async function forgeries(app: TestApp, claims: JwtPart, { good, trapUrl }: { good: string; trapUrl: string }) {
  const key = await serviceKey(app);
  const all = [...unsigned(good), ...confused(key), ...guessed(key.kid), ...ownKey(key.kid, trapUrl), ...extended(key)];
  return all.map(([name, header, signer]) => ({ name, token: compactJwt(header, claims, signer) }));
}
