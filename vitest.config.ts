import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['server/test/**/*.test.ts', 'server/src/**/*.test.ts', 'cli/**/*.test.ts'],
    // A process a file: native addons and listening servers don't share one. Two, because that is what a small machine has.
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    globals: false,
  },
});
