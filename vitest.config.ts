import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
// biome-ignore lint/correctness/useImportExtensions: a script that Node.js runs as it is; its types are beside it
import { storeCounts, testStores } from './scripts/test-stores.mjs';

const { all, onPostgres, postgresOnly } = testStores();
const { LATCHKEY_TEST_POSTGRES, LATCHKEY_TEST_RESULT: outputFile } = process.env;
/** Whether somebody has a PostgreSQL ready: then nothing runs on the embedded store. */
const isGiven = LATCHKEY_TEST_POSTGRES !== undefined;

const embedded: TestProjectInlineConfiguration = {
  extends: true,
  test: { name: 'embedded', include: all.filter((file) => !postgresOnly.includes(file)) },
};
const postgres: TestProjectInlineConfiguration = {
  extends: true,
  test: {
    name: 'postgres',
    include: onPostgres,
    globalSetup: isGiven ? [] : ['server/test/postgres-for-tests.ts'],
  },
};

export default defineConfig({
  test: {
    // A process a file: native addons and listening servers don't share one. Two, because that is what a small machine has.
    pool: 'forks',
    maxWorkers: 2,
    setupFiles: ['server/test/patient-waits.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    globals: false,
    projects: isGiven ? [postgres] : [embedded, postgres],
    reporters: ['default', ...(outputFile ? [['json', { outputFile }] as ['json', object]] : []), storeCounts],
  },
});
