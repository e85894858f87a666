import type { Tx } from '../../database.ts';

/** The signatures of recorded erasures. Those of earlier releases have none until the operator signs them. Rule: AUDIT-20. */
export async function up({ schema }: Tx): Promise<void> {
  await schema
    .createTable('audit_erasures')
    .addColumn('sequence', 'bigint', (c) => c.primaryKey())
    .addColumn('mac', 'text', (c) => c.notNull())
    .addColumn('signed_at', 'bigint', (c) => c.notNull())
    .execute();
}
