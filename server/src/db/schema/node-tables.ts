/** Milliseconds since 1970. */
type Ms = number;

interface Jobs {
  name: string;
  /** Time when it is due again. */
  due_at: Ms;
}

interface CompatibleSchemas {
  version: number;
  /** The oldest schema whose releases go on working on a store with this one. */
  compatible_from: number;
}

/** Tables by which nodes of one store, and consecutive releases on it, coordinate. */
export interface NodeTables {
  jobs: Jobs;
  compatible_schemas: CompatibleSchemas;
}
