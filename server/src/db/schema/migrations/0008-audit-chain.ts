import { hash, randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import type { Tx } from '../../database.ts';

const rowsAtOnce = 500;
const saltBytes = 16;

/** A record of before. */
interface Earlier {
  readonly sequence: number;
  readonly id: string;
  readonly occurred_at: number;
  readonly org_id: string | null;
  readonly action: string;
  readonly actor_user_id: string | null;
  readonly actor_token_id: string | null;
  readonly subject_id: string | null;
  readonly network: string;
  readonly request_id: string;
  readonly details: string;
}

/** Canonical JSON as it was when this step was made: a step does not change with the code around it. */
function canonical(text: string): string {
  return JSON.stringify(JSON.parse(text), (_, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
  });
}

/** A record of before as the chain has it, with the hashes as they were when this step was made. */
function chained(row: Earlier, previous_hash: string) {
  const salt = randomBytes(saltBytes).toString('hex');
  const details = canonical(row.details);
  const content_hash = hash('sha256', `${salt}[${JSON.stringify(row.network)},${details},{}]`, 'hex');
  const { sequence, id, occurred_at, org_id, action, actor_user_id, actor_token_id, subject_id, request_id } = row;
  const who = [actor_user_id, actor_token_id, null, subject_id, null, request_id];
  const timestamp = new Date(occurred_at).toISOString();
  const fields = [previous_hash, sequence, id, timestamp, org_id, action, 'success', ...who, content_hash];
  return {
    ...row,
    details,
    area: action.slice(0, action.indexOf('.')),
    outcome: 'success' as const,
    changes: '{}',
    salt,
    content_hash,
    previous_hash,
    hash: hash('sha256', JSON.stringify(['latchkey-audit-1', ...fields]), 'hex'),
  };
}

async function createChained({ schema }: Tx): Promise<void> {
  await schema
    .createTable('audit_log')
    .addColumn('sequence', 'bigint', (c) => c.primaryKey())
    .addColumn('id', 'text', (c) => c.notNull().unique())
    .addColumn('occurred_at', 'bigint', (c) => c.notNull())
    .addColumn('org_id', 'text')
    .addColumn('action', 'text', (c) => c.notNull())
    .addColumn('area', 'text', (c) => c.notNull())
    .addColumn('outcome', 'text', (c) => c.notNull())
    .addColumn('actor_user_id', 'text')
    .addColumn('actor_token_id', 'text')
    .addColumn('actor_client_id', 'text')
    .addColumn('subject_id', 'text')
    .addColumn('subject_owner_id', 'text')
    .addColumn('request_id', 'text', (c) => c.notNull())
    .addColumn('network', 'text', (c) => c.notNull())
    .addColumn('details', 'text', (c) => c.notNull())
    .addColumn('changes', 'text', (c) => c.notNull())
    .addColumn('salt', 'text')
    .addColumn('content_hash', 'text', (c) => c.notNull())
    .addColumn('previous_hash', 'text', (c) => c.notNull())
    .addColumn('hash', 'text', (c) => c.notNull())
    .execute();
}

async function copyEarlier(tx: Tx): Promise<void> {
  let last = 0;
  let previous = '0'.repeat(64);
  for (;;) {
    const { rows } = await sql<Earlier>`
      select * from audit_log_unchained where sequence > ${last} order by sequence limit ${rowsAtOnce}
    `.execute(tx);
    const copies = rows.map((row) => {
      const copy = chained(row, previous);
      previous = copy.hash;
      return copy;
    });
    if (copies.length > 0) await tx.insertInto('audit_log').values(copies).execute();
    last = rows.at(-1)?.sequence ?? last;
    if (rows.length < rowsAtOnce) return;
  }
}

/** One for each thing that records are searched by, in the order in which they are listed. */
async function addIndexes({ schema }: Tx): Promise<void> {
  const index = (name: string, column: string) =>
    schema.createIndex(`audit_log_${name}`).on('audit_log').columns([column, 'occurred_at', 'sequence']);
  await schema.createIndex('audit_log_time').on('audit_log').columns(['occurred_at', 'sequence']).execute();
  await index('action', 'action').execute();
  await index('area', 'area').execute();
  await index('outcome', 'outcome').execute();
  for (const column of ['actor_user_id', 'actor_token_id', 'actor_client_id', 'subject_id', 'subject_owner_id']) {
    await index(column, column).where(sql.ref(column), 'is not', null).execute();
  }
}

/** Chains the records of the audit log by their hashes, and makes room for what they tell from now on. Rule: AUDIT-10. */
export async function up(tx: Tx): Promise<void> {
  await tx.schema.alterTable('audit_log').renameTo('audit_log_unchained').execute();
  await createChained(tx);
  await copyEarlier(tx);
  await tx.schema.dropTable('audit_log_unchained').execute();
  await addIndexes(tx);
  await tx.schema.alterTable('users').addColumn('erased_at', 'bigint').execute();
}
