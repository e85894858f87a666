import type { Principal } from '../access/principal.ts';
import type { Write } from '../access/reauthorization.ts';
import type { Forwarded, PassedResponse } from '../http/endpoint.ts';
import type { Services } from '../services.ts';
import type { ConnectorRequest, ConnectorResponse } from './connector.ts';

/** An operation as the connector backend has it. */
interface Operation extends Pick<ConnectorRequest, 'path' | 'query' | 'body'> {
  /** Converts the backend's response to ours, or throws. */
  readonly pass: (response: ConnectorResponse) => PassedResponse;
}

/** An operation of the backend; one that changes something comes with what the endpoint writes with. */
export type BackendOperation = Operation &
  (
    | { readonly method: 'GET'; readonly write?: undefined }
    | { readonly method: Exclude<ConnectorRequest['method'], 'GET'>; readonly write: Write }
  );

/** The caller, and the services that are needed. */
interface Asking extends Pick<Services, 'connector'> {
  readonly caller: Principal;
  readonly forwarded: Forwarded;
}

/**
 * Decides who serves the request: the connector backend where there is one, and otherwise this service. A change is
 * sent to a backend only if the caller is still authorized when the body has arrived. Rules: TEAM-13, AUTH-27.
 */
export async function backendOrOwn<T>(
  { connector, caller, forwarded }: Asking,
  { pass, write, ...operation }: BackendOperation,
  own: () => Promise<T>,
): Promise<T | PassedResponse> {
  if (!connector) return own();
  await write?.(async () => {});
  return pass(await connector.exchange({ ...operation, ...forwarded, sender: caller.userId }));
}
