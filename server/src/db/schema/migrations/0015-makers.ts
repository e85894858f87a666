import type { Tx } from '../../database.ts';

/** Who holds what was made: the secret of a service, the address and the secret of a webhook; and a secret that goes on for a while. */
export async function up({ schema }: Tx): Promise<void> {
  await schema.alterTable('service_clients').addColumn('secret_by', 'text').execute();
  await schema.alterTable('service_clients').addColumn('earlier_secret_hash', 'text').execute();
  await schema.alterTable('service_clients').addColumn('earlier_secret_until', 'bigint').execute();
  await schema.alterTable('webhooks').addColumn('address_by', 'text').execute();
  await schema.alterTable('webhooks').addColumn('secret_by', 'text').execute();
}
