import { sql } from 'kysely';
import type { Tx } from '../../database.ts';

const rowsAtOnce = 1_000;

/** What `foldCase` was when this step was made: a step does not change with the code around it. */
function fold(name: string): string {
  const folded = name.toLowerCase().toUpperCase().toLowerCase();
  return folded
    .replaceAll('ς', 'σ')
    .replaceAll(/i\u0307+/g, 'i')
    .normalize('NFC');
}

/** Names as they are searched and sorted by are stored beside them, so that no list has to fold each row's name. */
async function addNameKeys(tx: Tx, table: 'users' | 'personal_access_tokens', column: 'full_name' | 'name') {
  await tx.schema
    .alterTable(table)
    .addColumn('name_key', 'text', (c) => c.notNull().defaultTo(''))
    .execute();
  for (let last = ''; ; ) {
    const rows = await sql<{ id: string; name: string }>`
      select id, ${sql.ref(column)} as name from ${sql.table(table)} where id > ${last} order by id limit ${rowsAtOnce}
    `.execute(tx);
    for (const { id, name } of rows.rows) {
      await tx
        .updateTable(table)
        .set({ name_key: fold(name) })
        .where('id', '=', id)
        .execute();
      last = id;
    }
    if (rows.rows.length < rowsAtOnce) return;
  }
}

/** What the user list is sorted by. */
async function addListIndexes({ schema }: Tx): Promise<void> {
  const index = (name: string, columns: string[]) =>
    schema
      .createIndex(name)
      .on('users')
      .columns(['org_id', 'is_deleted', ...columns])
      .execute();
  await index('users_in_order', ['id']);
  // Each holds all that the list searches and counts by, so that only the rows of the page are read.
  await index('users_by_name', ['name_key', 'id', 'email', 'has_logged_in']);
  await index('users_by_email', ['email', 'id', 'name_key', 'has_logged_in']);
  await index('users_by_creation', ['created_at', 'id', 'name_key', 'email', 'has_logged_in']);
  await schema.createIndex('users_recovery').on('users').columns(['org_id', 'recovery_email']).execute();
}

/** Pictures of people and the logo, apart from everything that is listed. Rule: PICTURE-13. */
async function createPictures({ schema }: Tx): Promise<void> {
  await schema
    .createTable('pictures')
    .addColumn('owner_id', 'text', (c) => c.primaryKey())
    .addColumn('org_id', 'text', (c) => c.notNull().references('organizations.id'))
    .addColumn('content', 'text')
    .addColumn('mime_type', 'text')
    .addColumn('updated_at', 'bigint', (c) => c.notNull())
    .execute();
}

/** What editing people, searching them and their pictures needs. */
export async function up(tx: Tx): Promise<void> {
  await addNameKeys(tx, 'users', 'full_name');
  await addNameKeys(tx, 'personal_access_tokens', 'name');
  await tx.schema.alterTable('users').addColumn('recovery_email', 'text').execute();
  await addListIndexes(tx);
  await createPictures(tx);
}
