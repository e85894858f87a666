import { WrittenResponse } from '../http/written-response.ts';

/** Returns a response with a message, or some of them, as JSON. */
export function rpcResponse(status: number, text: string): WrittenResponse {
  return new WrittenResponse(status, { 'content-type': 'application/json; charset=utf-8' }, text);
}

/** An error of JSON-RPC 2.0. */
interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** Returns the id that an error for a message repeats; null where the message has none, or asks for no response. */
export function idOf(message: unknown): string | number | null {
  if (typeof message !== 'object' || message === null || !('method' in message && 'id' in message)) return null;
  const { method, id } = message;
  return typeof method === 'string' && (typeof id === 'string' || typeof id === 'number') ? id : null;
}

/** Returns the error response for a whole request. */
export function rpcError(
  status: number,
  { code, message, data }: RpcError,
  id: string | number | null = null,
): WrittenResponse {
  const error = { code, message, ...(data === undefined ? {} : { data }) };
  return rpcResponse(status, JSON.stringify({ jsonrpc: '2.0', id, error }));
}
