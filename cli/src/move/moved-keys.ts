import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readPrivately } from '../../../server/src/base/private-file.ts';
import { Secret } from '../../../server/src/base/secret.ts';
import type { Config } from '../../../server/src/config/config.ts';
import type { Reader } from '../../../server/src/db/database.ts';
import {
  type Encryption,
  encryptionKeyFile,
  encryptionWith,
  readEncryptionKey,
} from '../../../server/src/keys/encryption.ts';
import { signingKeyFile, signingKeyPurpose } from '../../../server/src/keys/key-place.ts';
import { encryptionUse, isKeyChanging } from '../../../server/src/keys/rotate-encryption.ts';
import { parseStoredKeys } from '../../../server/src/keys/stored-keys.ts';
import { CommandError } from '../failures.ts';

const missing =
  'ENCRYPTION_KEY is not set, and the data directory holds none: give this command the one that the server has, or start the server once';

/** The encryption of the embedded store; none is made here. Ends the command where it is another one. */
async function presentEncryption({ dataDir, encryptionKey }: Config, read: Reader): Promise<Encryption> {
  if (encryptionKey === null && isKeyChanging(dataDir)) {
    throw new CommandError('failed', 'A change of the encryption key has not ended: start the server once');
  }
  const file = join(dataDir, encryptionKeyFile);
  const key = encryptionKey ?? (existsSync(file) ? readEncryptionKey(file) : null);
  if (key === null) throw new CommandError('failed', missing);
  if ((await encryptionUse(read, key)) === 'another') {
    throw new CommandError(
      'failed',
      'ENCRYPTION_KEY is not the one that the store is encrypted with: give this command the one that the server has',
    );
  }
  return encryptionWith(key);
}

/** The signing keys of a data directory, as the nodes of a shared store keep them. */
export interface MovedKeys {
  /** Encrypted. */
  readonly content: string;
  readonly count: number;
}

/**
 * Reads the signing keys, encrypted for the store that they move to; `null` where none were ever made. Ends the command
 * where the key is missing that they are to be encrypted with. Throws StartupError for keys that are damaged, or that
 * others can read.
 */
export async function readMovedKeys(config: Config, read: Reader): Promise<MovedKeys | null> {
  const encryption = await presentEncryption(config, read);
  const file = join(config.dataDir, signingKeyFile);
  if (!existsSync(file)) return null;
  const content = readPrivately(file);
  const keys = parseStoredKeys(content);
  if (keys === null) throw new CommandError('failed', `The key file ${file} is damaged: restore it from a backup`);
  return { content: await encryption.encrypt(signingKeyPurpose, new Secret(content)), count: keys.length };
}
