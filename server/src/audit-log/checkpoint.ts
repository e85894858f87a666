import { Secret } from '../base/secret.ts';
import type { Reader, Tx } from '../db/database.ts';
import type { Encryption } from '../keys/encryption.ts';
import { chainStart } from './chain.ts';

/** The last record that was removed; the oldest remaining record continues from it. */
export interface AuditStart {
  /** 0: nothing was removed. */
  readonly sequence: number;
  readonly hash: string;
}

/** Proves checkpoints, and signs new ones. */
export type CheckpointKey = Pick<Encryption, 'encrypt' | 'decrypt'>;

const purpose = 'audit-checkpoint';
const contentForm = /^(\d{1,15}):([0-9a-f]{64})$/;

/** Signs a checkpoint for the store: it cannot be made without the encryption key (AES-256-GCM). */
export function signCheckpoint(key: CheckpointKey, { sequence, hash }: AuditStart): Promise<string> {
  return key.encrypt(purpose, new Secret(`${sequence}:${hash}`));
}

/** Stores a checkpoint in the place of the one before it. */
export async function upsertCheckpoint(tx: Tx, content: string, nowMs: number): Promise<void> {
  const values = { content, made_at: nowMs };
  await tx
    .insertInto('audit_checkpoints')
    .values({ name: 'removed', ...values })
    .onConflict((oc) => oc.column('name').doUpdateSet(values))
    .execute();
}

async function oldestStart(read: Reader): Promise<AuditStart> {
  const oldest = await read.selectFrom('audit_log').orderBy('sequence').limit(1).selectAll().executeTakeFirst();
  return oldest ? { sequence: oldest.sequence - 1, hash: oldest.previous_hash } : { sequence: 0, hash: chainStart };
}

/**
 * Returns the start of the audit log; `null` for a checkpoint that was not signed with this key.
 * @param key `null`: there is none, and the oldest record is trusted where there is any checkpoint
 */
export async function selectAuditStart(read: Reader, key: CheckpointKey | null): Promise<AuditStart | null> {
  const row = await read.selectFrom('audit_checkpoints').select('content').executeTakeFirst();
  if (!row) return { sequence: 0, hash: chainStart };
  if (key === null) return oldestStart(read);
  const content = await key.decrypt(purpose, row.content);
  const [, sequence, hash] = contentForm.exec(content?.expose() ?? '') ?? [];
  return sequence === undefined || hash === undefined ? null : { sequence: Number(sequence), hash };
}
