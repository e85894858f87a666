import { erasureMac, selectErasureRecords } from '../audit-log/erasure-signature.ts';
import type { Reader, Tx } from '../db/database.ts';
import { type Encryption, purposeOf } from './encryption.ts';

/** Something that is stored encrypted, or signed with the key. */
export interface EncryptedValue {
  /** Whether a key is the one of this value. */
  isOf(key: Encryption): Promise<boolean>;
  /** Stores the same with another key. */
  renew(tx: Tx, from: Encryption, to: Encryption): Promise<unknown>;
}

/** @param replace stores another content in its place */
function encrypted(content: string, replace: (tx: Tx, content: string) => Promise<unknown>): EncryptedValue {
  const purpose = purposeOf(content);
  const textBy = async (key: Encryption) => (purpose === null ? null : key.decrypt(purpose, content));
  return {
    isOf: async (key) => (await textBy(key)) !== null,
    renew: async (tx, from, to) => {
      const text = await textBy(from);
      if (text !== null && purpose !== null) await replace(tx, await to.encrypt(purpose, text));
    },
  };
}

/** Signatures have nothing in them that could be encrypted anew: they are made again for what they are of. */
async function selectSigned(read: Reader): Promise<readonly EncryptedValue[]> {
  const records = await selectErasureRecords(read);
  return records.flatMap(({ mac, ...record }): EncryptedValue[] => {
    if (mac === null) return [];
    const renew = (tx: Tx, _: Encryption, to: Encryption) =>
      tx
        .updateTable('audit_erasures')
        .set({ mac: erasureMac(to, record) })
        .where('sequence', '=', record.sequence)
        .execute();
    return [{ isOf: async (key) => mac === erasureMac(key, record), renew }];
  });
}

/** Everything that is stored encrypted or signed with the key. Whatever else comes to be belongs here, too. Rule: AUDIT-15. */
export async function selectEncrypted(read: Reader): Promise<readonly EncryptedValue[]> {
  const settings = await read.selectFrom('settings').select(['name', 'content']).execute();
  const webhooks = await read.selectFrom('webhooks').select(['id', 'secret', 'earlier_secret']).execute();
  const keys = await read.selectFrom('shared_keys').select(['name', 'content']).execute();
  const checkpoints = await read.selectFrom('audit_checkpoints').select(['name', 'content']).execute();
  return [
    ...checkpoints.map(({ name, content }) =>
      encrypted(content, (tx, next) =>
        tx.updateTable('audit_checkpoints').set({ content: next }).where('name', '=', name).execute(),
      ),
    ),
    ...settings.map(({ name, content }) =>
      encrypted(content, (tx, next) =>
        tx.updateTable('settings').set({ content: next }).where('name', '=', name).execute(),
      ),
    ),
    ...webhooks.map(({ id, secret }) =>
      encrypted(secret, (tx, next) => tx.updateTable('webhooks').set({ secret: next }).where('id', '=', id).execute()),
    ),
    ...webhooks.flatMap(({ id, earlier_secret: content }) =>
      content === null
        ? []
        : encrypted(content, (tx, next) =>
            tx.updateTable('webhooks').set({ earlier_secret: next }).where('id', '=', id).execute(),
          ),
    ),
    ...keys.map(({ name, content }) =>
      encrypted(content, (tx, next) =>
        tx.updateTable('shared_keys').set({ content: next }).where('name', '=', name).execute(),
      ),
    ),
    ...(await selectSigned(read)),
  ];
}
