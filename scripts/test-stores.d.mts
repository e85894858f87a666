/** Which test files there are, and on which store they run. */
export function testStores(isWhole: boolean): {
  readonly all: string[];
  readonly onPostgres: string[];
  readonly postgresOnly: string[];
  /** What runs on PostgreSQL in every run, whatever is chosen. */
  readonly givenOnPostgres: string[];
  /** Why those that touch a store run on the embedded one only, by file. */
  readonly reasons: Readonly<Record<string, string>>;
};
