/** Milliseconds since 1970. */
type Ms = number;

interface Jobs {
  name: string;
  /** When it is to be done again. */
  due_at: Ms;
}

interface CompatibleSchemas {
  version: number;
  /** The oldest schema whose releases go on working on a store with this one. */
  compatible_from: number;
}

/** What nodes of one store, and releases that follow one another on it, have to know of each other. */
export interface NodeTables {
  jobs: Jobs;
  compatible_schemas: CompatibleSchemas;
}
