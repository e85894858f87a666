import type { Secret } from '../base/secret.ts';

/** A request to the connector backend. Nothing else of the caller's request reaches it. Rule: TEAM-4. */
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
  /** Sender of the request, so that none uses up what is shared; absent: none in particular. */
  readonly sender?: string;
  readonly clientName: string;
}

/**
 * Response of the connector backend, whatever its status. The body is at most 10 MB, and empty unless the status is
 * 2xx.
 */
export interface ConnectorResponse {
  readonly status: number;
  readonly contentType: string | undefined;
  readonly body: Buffer;
}

/** The connector backend that holds teams, where there is one. */
export interface Connector {
  /**
   * Sends one request, in at most 10 seconds and without following redirects. Throws `connectorUnavailable` (503) when
   * the backend cannot be reached or too many requests wait for it, `connectorTimeout` (504) when it is too slow,
   * `connectorBadAnswer` (502) for a response over 10 MB or an incomplete one. Rules: TEAM-5 to TEAM-8, TEAM-11.
   */
  exchange(request: ConnectorRequest): Promise<ConnectorResponse>;
  /** Ends all connections. */
  close(): Promise<void>;
  /**
   * Closes once running requests have ended. A holder of this client may still use it: a request that began before it
   * was replaced ends with it.
   */
  retire(): Promise<void>;
}
