import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { StartupError } from '../base/errors.ts';
import { readPrivately, writePrivately } from '../base/private-file.ts';

/** The name of the signing keys in their data directory. */
export const signingKeyFile = 'signing-keys.json';
/** Encryption purpose of the keys in a store. */
export const signingKeyPurpose = 'signing-keys';

/** Storage of the private signing keys. */
export interface KeyPlace {
  /** Name of the storage in messages to the operator. */
  readonly name: string;
  /**
   * Returns the stored content. Where there is none, `make` creates it; of two processes that start at the same time,
   * both get what was stored first.
   */
  open(make: () => Promise<string>): Promise<string>;
}

/** A file in the data directory, readable for its owner alone. Rule: AUTH-34. */
export function keyFile(dataDir: string): KeyPlace {
  const file = join(dataDir, signingKeyFile);
  return {
    name: `The key file ${file}`,
    open: async (make) => {
      if (!existsSync(file)) writePrivately(file, await make());
      return readPrivately(file);
    },
  };
}

/** Functions of a store and its encryption that keys need. */
interface SharedKeyParts {
  /** The encrypted content; `null` where there is none. */
  readonly select: () => Promise<string | null>;
  /** Stores an encrypted content, unless there is one. */
  readonly insert: (content: string) => Promise<void>;
  readonly encrypt: (content: string) => Promise<string>;
  /** `null` where another key was used. */
  readonly decrypt: (content: string) => Promise<string | null>;
}

/**
 * Keys in the store that several nodes share; encrypted, so that read access to the store is not enough to sign. Rule:
 * AUTH-34.
 */
export function sharedKeys({ select, insert, encrypt, decrypt }: SharedKeyParts): KeyPlace {
  const name = 'The signing keys in the store';
  return {
    name,
    open: async (make) => {
      if ((await select()) === null) await insert(await encrypt(await make()));
      const content = await decrypt((await select()) ?? '');
      if (content !== null) return content;
      throw new StartupError(
        `${name} were encrypted with another ENCRYPTION_KEY: give this node the one that the others have`,
        { variable: 'ENCRYPTION_KEY' },
      );
    },
  };
}
