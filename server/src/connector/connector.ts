import type { Secret } from '../base/secret.ts';

/** What is asked of the connector backend. Nothing else of the caller's request reaches it. Rule: TEAM-4. */
export interface ConnectorRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below the backend's address, such as `/api/v1/entity/user/list`; ids in it have passed validation. */
  readonly path: `/${string}`;
  /** Sent encoded, in this order. */
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** The caller's own credential, without a display prefix. */
  readonly credential: Secret;
  readonly requestId: string;
  /** Whose request it is, so that nobody uses up what is there for all; absent: nobody's in particular. */
  readonly sender?: string;
  readonly clientName: string;
}

/** What the connector backend answered, whatever its status. The body is at most 10 MB, and empty unless the status is 2xx. */
export interface ConnectorAnswer {
  readonly status: number;
  readonly contentType: string | undefined;
  readonly body: Buffer;
}

/** The connector backend that holds teams, where there is one. */
export interface Connector {
  /**
   * One exchange, in at most 10 seconds and without following redirects. Throws `connectorUnavailable` (503) when the
   * backend cannot be reached or there is too much waiting for it, `connectorTimeout` (504) when it is too slow,
   * `connectorBadAnswer` (502) for an answer over 10 MB or one that breaks off. Rules: TEAM-5 to TEAM-8, TEAM-11.
   */
  exchange(request: ConnectorRequest): Promise<ConnectorAnswer>;
  /** Ends all connections. */
  close(): Promise<void>;
  /**
   * Closes once what is under way has ended. Whoever still holds this client may use it: a request that began before it was
   * replaced ends with it.
   */
  retire(): Promise<void>;
}
