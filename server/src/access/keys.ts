import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import { z } from 'zod';
import type { Clock } from '../clock.ts';
import { StartupError } from '../errors.ts';
import type { Secret } from '../secret.ts';

/** A public key as it is published (RFC 8037). */
interface PublicKey {
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
  readonly kid: string;
  readonly alg: string;
  readonly use: string;
}

/** Signs the compact JWTs that credentials are, and publishes how to verify them. */
export interface SigningKeys {
  /** A JWT of these claims; times in seconds, as RFC 7519 has them. */
  sign(claims: JWTPayload): Promise<string>;
  /** The claims of a JWT that these keys signed and that is not past its time; `null` for anything else. */
  verify(jwt: string): Promise<JWTPayload | null>;
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

function writePrivately(file: string, content: string): void {
  const unfinished = `${file}.${randomUUID()}`;
  const handle = openSync(unfinished, 'wx', 0o600);
  writeSync(handle, content);
  fsyncSync(handle);
  closeSync(handle);
  renameSync(unfinished, file);
}

async function newKeyFile(file: string): Promise<void> {
  const { privateKey } = await generateKeyPair('Ed25519', { extractable: true });
  writePrivately(file, `${JSON.stringify({ keys: [{ ...(await exportJWK(privateKey)), kid: randomUUID() }] })}\n`);
}

function damaged(file: string): StartupError {
  return new StartupError(`The key file ${file} is damaged: restore it from a backup`);
}

function readKeyFile(file: string): z.infer<typeof storedKeys> {
  if ((statSync(file).mode & 0o077) !== 0) {
    throw new StartupError(
      `The key file ${file} can be read by others: run chmod 600 on it, or replace it if it leaked`,
    );
  }
  try {
    return storedKeys.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    throw damaged(file);
  }
}

interface KeyMaterial {
  readonly algorithm: 'EdDSA' | 'HS256';
  readonly kid?: string;
  readonly signing: CryptoKey | Uint8Array;
  readonly verifying: ReadonlyMap<string | undefined, CryptoKey | Uint8Array>;
  readonly publicKeys: readonly PublicKey[];
}

async function importKey({ d, ...publicPart }: z.infer<typeof storedKeys>['keys'][number]) {
  return {
    publicPart: { ...publicPart, alg: 'EdDSA', use: 'sig' },
    signing: await importJWK({ ...publicPart, d }, 'EdDSA'),
    verifying: await importJWK(publicPart, 'EdDSA'),
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
  if (!current) throw damaged(file);
  return {
    algorithm: 'EdDSA',
    kid: current.publicPart.kid,
    signing: current.signing,
    verifying: new Map(imported.map(({ publicPart, verifying }) => [publicPart.kid, verifying])),
    publicKeys: imported.map(({ publicPart }) => publicPart),
  };
}

function sharedKey(secret: Secret): KeyMaterial {
  const key = new TextEncoder().encode(secret.expose());
  return { algorithm: 'HS256', signing: key, verifying: new Map([[undefined, key]]), publicKeys: [] };
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
  const { algorithm, kid } = material;
  const header = { alg: algorithm, typ: 'JWT', ...(kid === undefined ? {} : { kid }) };
  return {
    sign: (claims) => new SignJWT(claims).setProtectedHeader(header).sign(material.signing),
    verify: async (jwt) => {
      try {
        const { payload } = await jwtVerify(
          jwt,
          ({ kid: presented }) => {
            const key = material.verifying.get(presented);
            if (!key) throw new Error('unknown key');
            return key;
          },
          { algorithms: [algorithm], currentDate: new Date(clock.now()) },
        );
        return payload;
      } catch {
        return null;
      }
    },
    publicKeys: material.publicKeys,
  };
}
