import type { Reader, Tx } from '../db/database.ts';

/** Something that is stored encrypted. */
export interface EncryptedValue {
  readonly content: string;
  /** Stores another content in its place. */
  replace(tx: Tx, content: string): Promise<unknown>;
}

/** Everything that is stored encrypted. Whatever else comes to be belongs here, too. Rule: AUDIT-15. */
export async function selectEncrypted(read: Reader): Promise<readonly EncryptedValue[]> {
  const settings = await read.selectFrom('settings').select(['name', 'content']).execute();
  const webhooks = await read.selectFrom('webhooks').select(['id', 'secret', 'earlier_secret']).execute();
  const keys = await read.selectFrom('shared_keys').select(['name', 'content']).execute();
  const checkpoints = await read.selectFrom('audit_checkpoints').select(['name', 'content']).execute();
  return [
    ...checkpoints.map(({ name, content }) => ({
      content,
      replace: (tx: Tx, next: string) =>
        tx.updateTable('audit_checkpoints').set({ content: next }).where('name', '=', name).execute(),
    })),
    ...settings.map(({ name, content }) => ({
      content,
      replace: (tx: Tx, next: string) =>
        tx.updateTable('settings').set({ content: next }).where('name', '=', name).execute(),
    })),
    ...webhooks.map(({ id, secret }) => ({
      content: secret,
      replace: (tx: Tx, next: string) =>
        tx.updateTable('webhooks').set({ secret: next }).where('id', '=', id).execute(),
    })),
    ...webhooks.flatMap(({ id, earlier_secret: content }) => {
      if (content === null) return [];
      const replace = (tx: Tx, next: string) =>
        tx.updateTable('webhooks').set({ earlier_secret: next }).where('id', '=', id).execute();
      return [{ content, replace }];
    }),
    ...keys.map(({ name, content }) => ({
      content,
      replace: (tx: Tx, next: string) =>
        tx.updateTable('shared_keys').set({ content: next }).where('name', '=', name).execute(),
    })),
  ];
}
