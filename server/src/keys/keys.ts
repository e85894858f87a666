import { hkdfSync, randomBytes } from 'node:crypto';
import { type CryptoKey, importJWK, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import { type Clock, second } from '../base/clock.ts';
import { StartupError } from '../base/errors.ts';
import { Secret } from '../base/secret.ts';
import type { KeyPlace } from './key-place.ts';
import { makeKey, parseStoredKeys, placeOfSigner, type StoredKey, storedContent } from './stored-keys.ts';

/** A public key as it is published (RFC 8037). */
interface PublicKey {
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
  readonly kid: string;
  readonly alg: string;
  readonly use: string;
}

/**
 * Signs the compact JWTs that credentials are, and publishes how to verify them. Times in seconds, as in RFC 7519. Each JWT
 * gets the claim `rnd`, unless its claims hold one: 128 random bits that the store never holds, so that the store, the keys
 * and the audit log together do not suffice to make it again. Rule: CRED-1.
 */
export interface SigningKeys {
  /** A JWT of these claims that others can verify: for session, personal access and scoped tokens only. */
  sign(claims: JWTPayload): Promise<Secret>;
  /**
   * Returns a JWT of these claims that only this service can verify, signed with a key derived from the private one.
   * Use it for values that only come back to this service: they are no proof to anyone else.
   */
  signInternal(claims: JWTPayload): Promise<Secret>;
  /** Returns the claims of such a JWT that is not expired; `null` for anything else. */
  verifyInternal(jwt: string): Promise<JWTPayload | null>;
  /** The public keys, the newest first. Empty with a shared secret. */
  publicKeys(): Promise<readonly PublicKey[]>;
}

/** Maximum age of cached keys; a rotation leaves other nodes several times as long. Rule: AUTH-59. */
const knownMsMax = 30 * second;

function damaged({ name }: KeyPlace): StartupError {
  return new StartupError(`${name} is damaged: restore it from a backup`);
}

/** A key with which tokens are signed from a certain time on. */
interface Signer {
  /** In milliseconds since 1970; without it, always. */
  readonly signsFrom?: number;
  readonly header: { readonly alg: 'EdDSA' | 'HS256'; readonly typ: 'JWT'; readonly kid?: string };
  readonly signing: CryptoKey | Uint8Array;
  readonly internalKey: Uint8Array;
  /** `null` with a shared secret. */
  readonly publicKey: PublicKey | null;
}

/** The newest first. */
type Signers = readonly [Signer, ...Signer[]];

const internalAlgorithm = 'HS256';
const internalType = 'sealed+jwt';

/** A key that says nothing about the secret which it is derived from (RFC 5869). */
function internalKeyOf(secret: string | Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, '', 'latchkey sealed tokens', 32));
}

async function importKey({ d, signsFrom, ...publicPart }: StoredKey): Promise<Signer> {
  return {
    ...(signsFrom === undefined ? {} : { signsFrom }),
    header: { alg: 'EdDSA', typ: 'JWT', kid: publicPart.kid },
    signing: await importJWK({ ...publicPart, d }, 'EdDSA'),
    internalKey: internalKeyOf(d),
    publicKey: { ...publicPart, alg: 'EdDSA', use: 'sig' },
  };
}

/** Makes private keys fit for use. Throws StartupError where they are damaged. */
async function importKeys(content: string, place: KeyPlace): Promise<Signers> {
  const keys = parseStoredKeys(content) ?? [];
  const [newest, ...others] = await Promise.all(keys.map(importKey)).catch(() => []);
  if (!newest) throw damaged(place);
  return [newest, ...others];
}

const randomPartBytes = 16;

/** Adds what nothing but the token itself holds. */
function withRandomPart(claims: JWTPayload): JWTPayload {
  return { rnd: randomBytes(randomPartBytes).toString('base64url'), ...claims };
}

const makeContent = async () => storedContent([await makeKey()]);

/** Opens our own keys; returns a function that reads them as they are now. */
async function ownKeys(place: KeyPlace, clock: Clock): Promise<() => Promise<Signers>> {
  let content = await place.open(makeContent);
  let signers = await importKeys(content, place);
  let readMs = clock.now();
  let reading: Promise<void> | null = null;

  async function read(): Promise<void> {
    try {
      // Only a start makes keys: where they have gone meanwhile, those that are known are the best there is.
      const found = await place.open(() => Promise.reject(damaged(place)));
      if (found !== content) signers = await importKeys(found, place);
      content = found;
    } catch {
      // Cached keys stay in use: a restart or the doctor reports the error.
    } finally {
      readMs = clock.now();
      reading = null;
    }
  }

  return async () => {
    // Whichever way the clock was moved.
    if (Math.abs(clock.now() - readMs) >= knownMsMax) reading ??= read();
    await reading;
    return signers;
  };
}

function sharedKey(secret: Secret): Signers {
  const raw = secret.expose();
  const signing = new TextEncoder().encode(raw);
  return [{ header: { alg: 'HS256', typ: 'JWT' }, signing, internalKey: internalKeyOf(raw), publicKey: null }];
}

interface KeyOptions {
  /** Storage of our own keys. */
  readonly place: KeyPlace;
  readonly clock: Clock;
  /** Given: HS256 with this secret, for a backend that verifies with the same one. `null`: Ed25519 keys of our own. */
  readonly sharedSecret: Secret | null;
}

/**
 * Opens the signing keys; Ed25519 ones are made at the first start, and rotated ones are taken up while it runs. Throws
 * StartupError for keys that are damaged, or that others can read. Rules: AUTH-34, AUTH-38, AUTH-59.
 */
export async function openSigningKeys({ place, clock, sharedSecret }: KeyOptions): Promise<SigningKeys> {
  const shared = sharedSecret && sharedKey(sharedSecret);
  const signers = shared ? async () => shared : await ownKeys(place, clock);

  async function signer(): Promise<Signer> {
    const known = await signers();
    return known[placeOfSigner(known, clock.now())] ?? known[0];
  }

  async function verifyWith(key: Uint8Array, jwt: string): Promise<JWTPayload | null> {
    try {
      const rules = { algorithms: [internalAlgorithm], typ: internalType, currentDate: new Date(clock.now()) };
      return (await jwtVerify(jwt, key, rules)).payload;
    } catch {
      return null;
    }
  }

  return {
    sign: async (claims) => {
      const { header, signing } = await signer();
      return new Secret(await new SignJWT(withRandomPart(claims)).setProtectedHeader(header).sign(signing));
    },
    signInternal: async (claims) => {
      const { internalKey } = await signer();
      const jwt = new SignJWT(withRandomPart(claims)).setProtectedHeader({ alg: internalAlgorithm, typ: internalType });
      return new Secret(await jwt.sign(internalKey));
    },
    verifyInternal: async (jwt) => {
      for (const { internalKey } of await signers()) {
        const claims = await verifyWith(internalKey, jwt);
        if (claims) return claims;
      }
      return null;
    },
    publicKeys: async () => (await signers()).flatMap(({ publicKey }) => publicKey ?? []),
  };
}
