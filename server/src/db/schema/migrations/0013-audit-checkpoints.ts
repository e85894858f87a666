import type { Tx } from '../../database.ts';

/** Where the audit log begins once its oldest records were removed. Rule: AUDIT-19. */
export async function up({ schema }: Tx): Promise<void> {
  await schema
    .createTable('audit_checkpoints')
    .addColumn('name', 'text', (c) => c.primaryKey())
    .addColumn('content', 'text', (c) => c.notNull())
    .addColumn('made_at', 'bigint', (c) => c.notNull())
    .execute();
}
