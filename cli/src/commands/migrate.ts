import { command } from '../command.ts';
import { storeOptions } from '../options.ts';

/** Rule: CLI-13. */
export const migrate = command({
  name: 'migrate',
  summary: "Bring the store to this release's schema",
  details:
    'The server does the same when it starts; this is for doing it at another time. The server must not run. Each step is ' +
    'kept whole or not at all; there is no way back but a backup.',
  examples: ['migrate', 'migrate --data-dir /var/lib/latchkey --json'],
  options: storeOptions,
  async run({ dataDir }, context) {
    const { migrateStore } = await import('../operator-store.ts');
    const { from, to } = await migrateStore(context, dataDir);
    const text =
      from === to ? `The store has schema ${to} already` : `The store was brought from schema ${from} to ${to}`;
    return { data: { schema: { from, to } }, text };
  },
});
