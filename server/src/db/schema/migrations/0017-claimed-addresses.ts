import type { Tx } from '../../database.ts';

/** The address that a link takes from a user who holds it unverified. Rule: ADDRESS-13. */
export async function up({ schema }: Tx): Promise<void> {
  await schema.alterTable('one_time_links').addColumn('email', 'text').execute();
}
