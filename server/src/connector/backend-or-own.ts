import type { Principal } from '../access/principal.ts';
import type { Forwarded, PassedAnswer } from '../http/endpoint.ts';
import type { Services } from '../services.ts';
import type { ConnectorAnswer, ConnectorRequest } from './connector.ts';

/** An operation as the connector backend has it. */
export interface BackendOperation extends Pick<ConnectorRequest, 'method' | 'path' | 'query' | 'body'> {
  /** Makes our answer of the backend's, or refuses it. */
  readonly pass: (answer: ConnectorAnswer) => PassedAnswer;
}

/** Who asks, and the services that it takes. */
interface Asking extends Pick<Services, 'connector' | 'db' | 'confirm'> {
  readonly caller: Principal;
  readonly forwarded: Forwarded;
}

/**
 * The one place that decides who answers: the connector backend where there is one, and otherwise this service. What
 * changes something is sent to a backend only for whoever may still act when the body has arrived. Rules: TEAM-13,
 * AUTH-27.
 */
export async function backendOrOwn<T>(
  { connector, db, confirm, caller, forwarded }: Asking,
  { pass, ...operation }: BackendOperation,
  own: () => Promise<T>,
): Promise<T | PassedAnswer> {
  if (!connector) return own();
  if (operation.method !== 'GET') await db.transaction((tx) => confirm(tx, caller, 'member'));
  return pass(await connector.exchange({ ...operation, ...forwarded, sender: caller.userId }));
}
