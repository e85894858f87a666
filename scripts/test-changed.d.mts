/** The test files that a change to these files can reach. */
export function testsOf(changed: readonly string[]): readonly string[];
