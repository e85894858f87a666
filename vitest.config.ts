import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
// biome-ignore lint/correctness/useImportExtensions: a script that Node.js runs as it is; its types are beside it
import { storeCounts, testStores } from './scripts/test-stores.mjs';

const { all, onPostgres, postgresOnly, isAlone } = testStores();
const { LATCHKEY_TEST_POSTGRES, LATCHKEY_TEST_RESULT: outputFile } = process.env;
/** Whether somebody has a PostgreSQL ready: then nothing runs on the embedded store. */
const isGiven = LATCHKEY_TEST_POSTGRES !== undefined;

/** Test files on one store: one after another in the same processes, which load the service once, and those that need one each. */
function projectsOf(store: string, files: readonly string[], globalSetup: string[] = []) {
  const project = (name: string, isolate: boolean): TestProjectInlineConfiguration => ({
    extends: true,
    test: { name, isolate, globalSetup, include: files.filter((file) => isAlone(file) === isolate) },
  });
  return [project(store, false), project(`${store}, alone`, true)].filter(({ test }) => test?.include?.length !== 0);
}

const embedded = projectsOf(
  'embedded',
  all.filter((file) => !postgresOnly.includes(file)),
);
const postgres = projectsOf('postgres', onPostgres, isGiven ? [] : ['server/test/postgres-for-tests.ts']);

export default defineConfig({
  test: {
    // Two processes, because that is what a small machine has.
    pool: 'forks',
    maxWorkers: 2,
    setupFiles: ['server/test/patient-waits.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    globals: false,
    projects: isGiven ? postgres : [...embedded, ...postgres],
    reporters: ['default', ...(outputFile ? [['json', { outputFile }] as ['json', object]] : []), storeCounts],
  },
});
