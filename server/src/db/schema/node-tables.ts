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

/** The response to a request with an `Idempotency-Key`. */
interface IdempotencyKeys {
  /** The caller's. */
  user_id: string;
  /** Hash of the key and of the credential that it was sent with. */
  key_hash: string;
  /** Hash of the operation and its body. */
  request_hash: string;
  /** JSON, without secrets. */
  response: string;
  /** Length of the response. */
  bytes: number;
  created_at: Ms;
}

/** Tables by which nodes of one store, and consecutive releases on it, coordinate. */
export interface NodeTables {
  jobs: Jobs;
  compatible_schemas: CompatibleSchemas;
  idempotency_keys: IdempotencyKeys;
}
