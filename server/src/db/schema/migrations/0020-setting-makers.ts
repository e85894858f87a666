import type { Tx } from '../../database.ts';

/** Who holds the secret of a setting, and who has looked at it since. */
export async function up({ schema }: Tx): Promise<void> {
  await schema.alterTable('settings').addColumn('secret_by', 'text').execute();
  await schema.alterTable('settings').addColumn('confirmed_by', 'text').execute();
}
