import { hkdfSync, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import { z } from 'zod';
import type { Clock } from '../clock.ts';
import { StartupError } from '../errors.ts';
import type { Secret } from '../secret.ts';
import { readPrivately, writePrivately } from './private-file.ts';

/** A public key as it is published (RFC 8037). */
interface PublicKey {
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
  readonly kid: string;
  readonly alg: string;
  readonly use: string;
}

/** Signs the compact JWTs that credentials are, and publishes how to verify them. Times in seconds, as in RFC 7519. */
export interface SigningKeys {
  /** A JWT of these claims that others can verify: for session, personal access and scoped tokens only. */
  sign(claims: JWTPayload): Promise<string>;
  /**
   * A JWT of these claims that nobody but this service can verify, signed with a key derived from the private one. For
   * what only comes back to us: others must not take it for proof of anything.
   */
  seal(claims: JWTPayload): Promise<string>;
  /** The claims of a sealed JWT that is not past its time; `null` for anything else. */
  unseal(jwt: string): Promise<JWTPayload | null>;
  /** The public keys, the current one first. Empty with a shared secret. */
  readonly publicKeys: readonly PublicKey[];
}

const storedKeys = z.object({
  keys: z
    .array(
      z.object({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string(), d: z.string(), kid: z.string() }),
    )
    .min(1),
});

async function newKeyFile(file: string): Promise<void> {
  const { privateKey } = await generateKeyPair('Ed25519', { extractable: true });
  writePrivately(file, `${JSON.stringify({ keys: [{ ...(await exportJWK(privateKey)), kid: randomUUID() }] })}\n`);
}

function damaged(file: string): StartupError {
  return new StartupError(`The key file ${file} is damaged: restore it from a backup`);
}

function readKeyFile(file: string): z.infer<typeof storedKeys> {
  const content = readPrivately(file);
  try {
    return storedKeys.parse(JSON.parse(content));
  } catch {
    throw damaged(file);
  }
}

interface KeyMaterial {
  readonly algorithm: 'EdDSA' | 'HS256';
  readonly kid?: string;
  readonly signing: CryptoKey | Uint8Array;
  /** For sealed tokens; the first one seals, all unseal. */
  readonly sealing: readonly [Uint8Array, ...Uint8Array[]];
  readonly publicKeys: readonly PublicKey[];
}

const sealAlgorithm = 'HS256';
const sealedType = 'sealed+jwt';

/** A key that says nothing about the secret which it is derived from (RFC 5869). */
function sealingKey(secret: string | Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, '', 'latchkey sealed tokens', 32));
}

async function importKey({ d, ...publicPart }: z.infer<typeof storedKeys>['keys'][number]) {
  return {
    publicPart: { ...publicPart, alg: 'EdDSA', use: 'sig' },
    signing: await importJWK({ ...publicPart, d }, 'EdDSA'),
  };
}

async function embeddedKeys(dataDir: string): Promise<KeyMaterial> {
  const file = join(dataDir, 'signing-keys.json');
  if (!existsSync(file)) await newKeyFile(file);
  const { keys } = readKeyFile(file);
  const imported = await Promise.all(keys.map(importKey)).catch(() => {
    throw damaged(file);
  });
  const [current] = imported;
  const [sealing, ...earlier] = keys.map(({ d }) => sealingKey(d));
  if (!current || !sealing) throw damaged(file);
  return {
    algorithm: 'EdDSA',
    kid: current.publicPart.kid,
    signing: current.signing,
    sealing: [sealing, ...earlier],
    publicKeys: imported.map(({ publicPart }) => publicPart),
  };
}

function sharedKey(secret: Secret): KeyMaterial {
  const raw = secret.expose();
  return {
    algorithm: 'HS256',
    signing: new TextEncoder().encode(raw),
    sealing: [sealingKey(raw)],
    publicKeys: [],
  };
}

interface KeyOptions {
  readonly dataDir: string;
  readonly clock: Clock;
  /** Given: HS256 with this secret, for a backend that verifies with the same one. `null`: Ed25519 keys of our own. */
  readonly sharedSecret: Secret | null;
}

/**
 * Opens the signing keys; Ed25519 ones are made at the first start, readable for their owner alone. Throws StartupError
 * for a key file that is damaged or that others can read. Rules: AUTH-34, AUTH-38.
 */
export async function openSigningKeys({ dataDir, clock, sharedSecret }: KeyOptions): Promise<SigningKeys> {
  const material = sharedSecret ? sharedKey(sharedSecret) : await embeddedKeys(dataDir);
  const { algorithm, kid, signing, sealing, publicKeys } = material;
  const header = { alg: algorithm, typ: 'JWT', ...(kid === undefined ? {} : { kid }) };

  async function unsealWith(key: Uint8Array, jwt: string): Promise<JWTPayload | null> {
    try {
      const rules = { algorithms: [sealAlgorithm], typ: sealedType, currentDate: new Date(clock.now()) };
      return (await jwtVerify(jwt, key, rules)).payload;
    } catch {
      return null;
    }
  }

  return {
    sign: (claims) => new SignJWT(claims).setProtectedHeader(header).sign(signing),
    seal: (claims) => new SignJWT(claims).setProtectedHeader({ alg: sealAlgorithm, typ: sealedType }).sign(sealing[0]),
    unseal: async (jwt) => {
      for (const key of sealing) {
        const claims = await unsealWith(key, jwt);
        if (claims) return claims;
      }
      return null;
    },
    publicKeys,
  };
}
