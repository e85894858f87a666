import { parseArgs } from 'node:util';
import { StepError } from './steps.mjs';

/** Output of `npm test -- --help`. */
export const help = `Installs what is missing, checks, builds, and runs the tests. The last line says \`N passed, N failed\`.

Usage: npm test                        every test; on PostgreSQL the files that together reach every statement
       npm run test:all                every file on both stores, every random try, and fault injection in short form
       npm test -- <name> [<name> …]   the checks, then only test files with one of these in their path, on both stores
       npm test -- --changed           the checks, then only test files that the change since the last commit can reach
       npm test -- --changed=<commit>  the same since a commit

  --all      as npm run test:all
  --record   with --all: chooses anew which files each run has on PostgreSQL (scripts/postgres-files.json)
  --budget   prints the table of docs/test-budget.md for this run
  -t <text>  only tests with this in their name
  -u         writes snapshots anew
  --help     this text
`;

/** Reads the command line of `npm test`. Throws StepError for what it does not know. */
export function readOptions(/** @type {readonly string[]} */ args) {
  // `--changed` may stand alone, which an option with a value may not.
  const given = args.map((arg) => (arg === '--changed' ? '--changed=' : arg));
  try {
    const { values, positionals } = parseArgs({
      args: given,
      allowPositionals: true,
      options: {
        all: { type: 'boolean', default: false },
        changed: { type: 'string' },
        record: { type: 'boolean', default: false },
        budget: { type: 'boolean', default: false },
        testNamePattern: { type: 'string', short: 't' },
        update: { type: 'boolean', short: 'u', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    return { ...values, filters: positionals };
  } catch (error) {
    throw new StepError(`${error instanceof Error ? error.message : String(error)}\nSee npm test -- --help`);
  }
}
