import { createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose';
import { StartupError } from '../base/errors.ts';
import { readPrivately, writePrivately } from '../base/private-file.ts';
import { Secret } from '../base/secret.ts';

const keyForm = /^[0-9a-f]{64}$/i;
const algorithm = { alg: 'dir', enc: 'A256GCM' };

/** Encrypts stored values that must not be readable without the key (AES-256-GCM, RFC 7516). Rule: AUDIT-6. */
export interface Encryption {
  /** @param purpose purpose of the text; it decrypts for no other */
  encrypt(purpose: string, text: Secret): Promise<string>;
  /** The text again; `null` where another key, or another purpose, was used. */
  decrypt(purpose: string, encrypted: string): Promise<Secret | null>;
  /** Returns a keyed hash of a text (HMAC-SHA-256), in base64url; it cannot be computed without the key. */
  mac(purpose: string, text: string): string;
}

/** The name of the key in its data directory. */
export const encryptionKeyFile = 'encryption-key';

/** A new key, in hexadecimal digits. */
export function makeEncryptionKey(): Secret {
  return new Secret(randomBytes(32).toString('hex'));
}

/** Writes a key file that is its owner's alone. */
export function writeEncryptionKey(file: string, key: Secret): void {
  writePrivately(file, `${key.expose()}\n`);
}

/** Reads a key file. Throws StartupError for one that is damaged, or that others can read. */
export function readEncryptionKey(file: string): Secret {
  const key = readPrivately(file).trim();
  if (!keyForm.test(key)) throw new StartupError(`The key file ${file} is damaged: restore it from a backup`);
  return new Secret(key);
}

function ownKey(dataDir: string): Secret {
  const file = join(dataDir, encryptionKeyFile);
  if (!existsSync(file)) writeEncryptionKey(file, makeEncryptionKey());
  return readEncryptionKey(file);
}

/**
 * Returns the purpose that an encrypted text states; `null` for other texts. Anyone can write one: only decrypting
 * proves it.
 */
export function purposeOf(encrypted: string): string | null {
  try {
    return decodeProtectedHeader(encrypted).typ ?? null;
  } catch {
    return null;
  }
}

/** Encryption with a key of 64 hexadecimal digits. */
export function encryptionWith(key: Secret): Encryption {
  const raw = new Uint8Array(Buffer.from(key.expose(), 'hex'));
  return {
    mac: (purpose, text) =>
      createHmac('sha256', new Uint8Array(hkdfSync('sha256', raw, '', purpose, 32)))
        .update(text)
        .digest('base64url'),
    encrypt: (purpose, text) =>
      new CompactEncrypt(new TextEncoder().encode(text.expose()))
        .setProtectedHeader({ ...algorithm, typ: purpose })
        .encrypt(raw),
    decrypt: async (purpose, encrypted) => {
      try {
        const { plaintext, protectedHeader } = await compactDecrypt(encrypted, raw, {
          keyManagementAlgorithms: [algorithm.alg],
          contentEncryptionAlgorithms: [algorithm.enc],
        });
        return protectedHeader.typ === purpose ? new Secret(new TextDecoder().decode(plaintext)) : null;
      } catch {
        return null;
      }
    },
  };
}

/**
 * Opens the encryption of stored settings with the configured key, or with one that is made at the first start and is
 * its owner's alone. Throws StartupError for a key file that is damaged or that others can read. Rule: CONFIG-7.
 */
export function openEncryption({
  dataDir,
  key,
}: {
  readonly dataDir: string;
  readonly key: Secret | null;
}): Encryption {
  return encryptionWith(key ?? ownKey(dataDir));
}
