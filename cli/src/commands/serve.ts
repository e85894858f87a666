import { command } from '../command.ts';
import { storeOptions } from '../options.ts';

/** Rule: CLI-12. */
export const serve = command({
  name: 'serve',
  summary: 'Run the server in this process',
  details:
    'The same as npm start, without installing or building. It migrates the store, listens at HOST and PORT and logs ' +
    'to the standard output. SIGTERM and SIGINT stop it gracefully, SIGHUP reloads the configuration.',
  examples: ['serve', 'serve --data-dir /var/lib/latchkey'],
  options: storeOptions,
  async run({ dataDir }, { environment }) {
    const { serve: run } = await import('../../../server/src/process/serve.ts');
    await run(dataDir === null ? environment : { ...environment, DATA_DIR: dataDir, DATA_DIR_FILE: undefined });
    // A signal ends the process.
    return new Promise(() => {});
  },
});
