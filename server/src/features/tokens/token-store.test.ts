import { describe, expect, it } from 'vitest';
import { hashCredential, type Secret } from '../../base/secret.ts';
import type { Tx } from '../../db/database.ts';
import type { NewRow } from '../../db/schema/tables.ts';
import { insertToken } from './token-store.ts';

/** What the compiler takes for the hash of a token, and what it refuses. */
function storing(tx: Tx, row: Omit<NewRow<'personal_access_tokens'>, 'hash'>, jwt: Secret): Promise<void>[] {
  return [
    // @ts-expect-error -- what is signed is a secret
    insertToken(tx, { ...row, hash: jwt }),
    // @ts-expect-error -- nor is a text a hash, whatever it says
    insertToken(tx, { ...row, hash: jwt.expose() }),
    insertToken(tx, { ...row, hash: hashCredential(jwt.expose()) }),
  ];
}

describe('the columns of hashes', () => {
  it('take nothing but hashes: the rest does not compile (STORE-8)', () => {
    expect(storing).toHaveLength(3);
  });
});
