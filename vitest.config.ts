import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { useTestDirectory } from './scripts/test-directory.mjs';
import { TestProgress } from './scripts/test-progress.mjs';
import { recordWriter } from './scripts/test-records.mjs';
import { testStores } from './scripts/test-stores.mjs';

const { LATCHKEY_TEST_POSTGRES, LATCHKEY_TEST_PART } = process.env;
/** A PostgreSQL is given: then nothing runs on the embedded store. */
const isGiven = LATCHKEY_TEST_POSTGRES !== undefined;
/** Only `npm test` without arguments leaves files out on PostgreSQL, and checks that what is left reaches every statement. */
const { all, onPostgres, postgresOnly } = testStores(LATCHKEY_TEST_PART === undefined);

useTestDirectory();

const embedded: TestProjectInlineConfiguration = {
  extends: true,
  test: {
    name: 'embedded',
    include: all.filter((file) => !postgresOnly.includes(file)),
    globalSetup: ['server/test/support/store-for-tests.ts'],
  },
};
const postgres: TestProjectInlineConfiguration = {
  extends: true,
  test: {
    name: 'postgres',
    include: onPostgres,
    globalSetup: isGiven ? [] : ['server/test/support/postgres-for-tests.ts'],
  },
};

export default defineConfig({
  test: {
    // Test files run one after another in a few processes, which load the service once and have its code warm. One more
    // than a small machine has processors, as tests wait, too.
    pool: 'forks',
    maxWorkers: 3,
    isolate: false,
    setupFiles: [
      'server/test/support/patient-waits.ts',
      'server/test/support/nothing-left.ts',
      'server/test/support/file-record.ts',
    ],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    globals: false,
    projects: isGiven ? [postgres] : [embedded, postgres],
    reporters: [new TestProgress(), recordWriter],
  },
});
