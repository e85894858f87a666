import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../../server/src/config/config.ts';
import {
  type Encryption,
  encryptionKeyFile,
  encryptionWith,
  readEncryptionKey,
} from '../../server/src/keys/encryption.ts';

/** The encryption of the servers; `null` where their key is not at hand: none is made here. */
export function presentKey({ dataDir, encryptionKey }: Config): Encryption | null {
  const file = join(dataDir, encryptionKeyFile);
  const key = encryptionKey ?? (existsSync(file) ? readEncryptionKey(file) : null);
  return key && encryptionWith(key);
}
