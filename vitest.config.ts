import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
// biome-ignore lint/correctness/useImportExtensions: a script that Node.js runs as it is; its types are beside it
import { storeCounts, testStores } from './scripts/test-stores.mjs';

const { all, onPostgres, postgresOnly } = testStores();
const { LATCHKEY_TEST_POSTGRES, LATCHKEY_TEST_RESULT: outputFile } = process.env;
/** Whether somebody has a PostgreSQL ready: then nothing runs on the embedded store. */
const isGiven = LATCHKEY_TEST_POSTGRES !== undefined;

const embedded: TestProjectInlineConfiguration = {
  extends: true,
  test: {
    name: 'embedded',
    include: all.filter((file) => !postgresOnly.includes(file)),
    globalSetup: ['server/test/store-for-tests.ts'],
  },
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
    // Test files run one after another in a few processes, which load the service once and have its code warm. One more
    // than a small machine has processors, as tests wait, too.
    pool: 'forks',
    maxWorkers: 3,
    isolate: false,
    setupFiles: ['server/test/patient-waits.ts', 'server/test/nothing-left.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    globals: false,
    projects: isGiven ? [postgres] : [embedded, postgres],
    reporters: ['default', ...(outputFile ? [['json', { outputFile }] as ['json', object]] : []), storeCounts],
  },
});
