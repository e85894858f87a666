import { hash } from 'node:crypto';
import { inspect } from 'node:util';

const shown = '[secret]';

/**
 * A value that must not be printed. However it reaches a log, a template, JSON or an error, `[secret]` comes out;
 * only `expose()` gives the value, so that a search for that word finds every place where a secret is used.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself. Never log it, never put it in an error. */
  expose(): string {
    return this.#value;
  }

  toString(): string {
    return shown;
  }

  toJSON(): string {
    return shown;
  }

  [inspect.custom](): string {
    return shown;
  }
}

declare const hashed: unique symbol;

/** SHA-256 of a random credential, in base64url (43 characters): the only form in which credentials are stored. */
export type CredentialHash = string & { readonly [hashed]: true };

/**
 * Hashes a raw credential for the store; there is no other way. Plain SHA-256 suffices, because these values are random
 * and long; passwords go through argon2id instead.
 */
export function hashCredential(raw: string): CredentialHash {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the one place where the brand is given
  return hash('sha256', raw, 'base64url') as CredentialHash;
}

/** Takes a SHA-256 of a credential that was made elsewhere, by the same rule: 32 bytes. */
export function credentialHashOf(digest: Buffer): CredentialHash {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the brand of a hash that is known by its digest alone
  return digest.toString('base64url') as CredentialHash;
}
