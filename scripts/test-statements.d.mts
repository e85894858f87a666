interface RanFile {
  readonly project: string;
  readonly file: string;
  readonly ms: number;
  readonly statements: readonly string[];
}

/** One text for each statement that tests reached on the embedded store and not on PostgreSQL. */
export function statementsWithoutPostgres(records: { readonly files: readonly RanFile[] }): readonly string[];
/** Files that together reach every statement that was reached on PostgreSQL. */
export function chooseFiles(
  records: { readonly files: readonly RanFile[] },
  given: readonly string[],
): readonly string[];
