import type { Client, Json, TestResponse } from './test-app.ts';

/** Media types that every client of the protocol accepts. */
export const accept = 'application/json, text/event-stream';
/** The newest revision, and the one before it. */
export const newest = '2026-07-28';
export const earlier = '2025-11-25';

interface Options {
  readonly headers?: Readonly<Record<string, string>>;
  readonly path?: string;
}

/** Sends a message to the endpoint of the protocol, as it is. */
export function send(
  client: Client,
  message: unknown,
  { headers = {}, path = '//mcp' }: Options = {},
): Promise<TestResponse> {
  return client.post(path, message, { headers: { accept, ...headers } });
}

/** Asks for something in an earlier revision, and answers the whole message. */
export async function ask(client: Client, method: string, params?: Json): Promise<Json> {
  const message = { jsonrpc: '2.0', id: 1, method, ...(params === undefined ? {} : { params }) };
  return (await send(client, message, { headers: { 'mcp-protocol-version': earlier } })).body;
}

/** Asks for something in the newest revision, with all that belongs to it. */
export function askNewest(client: Client, method: string, params: Json = {}): Promise<TestResponse> {
  const { message, headers } = newestRequest(method, params);
  return send(client, message, { headers });
}

/** Message and headers of a request in the newest revision. */
export function newestRequest(method: string, params: Json = {}) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': newest,
    'io.modelcontextprotocol/clientInfo': { name: 'tests', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const named = params.name ?? params.uri;
  const headers = {
    'mcp-protocol-version': newest,
    'mcp-method': method,
    ...(named === undefined ? {} : { 'mcp-name': named }),
  };
  return { message: { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }, headers };
}

/** Returns the names of the tools that are listed for a caller, in their order. */
export async function toolNames(client: Client): Promise<string[]> {
  const { result } = await ask(client, 'tools/list');
  return result.tools.map(({ name }: Json) => name);
}

/** Calls a tool and answers its result; throws where the protocol has an error instead. */
export async function callTool(client: Client, name: string, given: Json = {}): Promise<Json> {
  const message = await ask(client, 'tools/call', { name, arguments: given });
  if (!message?.result) throw new Error(`no result of ${name}: ${JSON.stringify(message)}`);
  return message.result;
}

/** The code of a refused call; `undefined` for one that went well. */
export function codeOf(result: Json): string | undefined {
  return result._meta?.['io.latchkey/error']?.code;
}
