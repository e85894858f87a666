import { setImmediate } from 'node:timers/promises';
import {
  classifyInboundRequest,
  createMcpHandler,
  type JSONRPCMessage,
  ProtocolErrorCode,
} from '@modelcontextprotocol/server';
import type { Logger } from 'pino';
import { inputReader, type ReadInput } from '../http/input.ts';
import type { Operation } from '../http/operations.ts';
import { WrittenResponse } from '../http/written-response.ts';
import type { AllServices } from '../services.ts';
import { type AgentServing, serving } from './agent-server.ts';
import { type AgentCall, type McpHeaders, type McpService, readHeaders } from './agents.ts';
import { isEarlierCall, respondEarlier } from './earlier-revisions.ts';
import { idOf, rpcError } from './rpc-responses.ts';
import { makeTools, type Tool } from './tool.ts';
import { callTool } from './tool-call.ts';

/** Dependencies of the service of the protocol. */
export interface McpParts {
  readonly endpoints: readonly Operation[];
  /** Asked for once everything is composed. */
  readonly services: () => AllServices;
  readonly log: Logger;
}

/** Server of an agent, and a function that checks its credential again. */
type Served = AgentServing & { readonly admitAnew: () => Promise<Served>; readonly hasLeft: () => boolean };

/** Every response is JSON; the newest revision's handler insists on both. Rule: FIT-41. */
const acceptedTypes = ['application/json', 'text/event-stream'] as const;
const rangesOfJson = ['application/json', 'application/*', '*/*'];
/** None is ever open: nothing that could be subscribed to is offered, and so a stream of it ends as it begins. */
const subscriptionsMax = 1;

/** Returns whether a client takes JSON: it says so, takes anything, or says nothing. */
function takesJson(accept: string): boolean {
  const ranges = accept.split(',').map((range) => range.split(';')[0]?.trim().toLowerCase() ?? '');
  return ranges.every((range) => range === '') || rangesOfJson.some((range) => ranges.includes(range));
}

/** Returns the objection to processing the message at all. Rules: MCP-4, FIT-41. */
function objectionOf({ accept = '' }: McpHeaders, message: unknown): WrittenResponse | null {
  if (!takesJson(accept)) {
    return rpcError(406, { code: -32_000, message: 'Not Acceptable: Client must accept application/json' });
  }
  if (message !== undefined) return null;
  return rpcError(400, { code: ProtocolErrorCode.InvalidRequest, message: 'There is no message' });
}

/** The headers that say which revision a message is of. */
function classifiedBy(headers: McpHeaders) {
  const { 'mcp-protocol-version': version, 'mcp-method': method, 'mcp-name': named } = headers;
  return {
    ...(version === undefined ? {} : { protocolVersionHeader: version }),
    ...(method === undefined ? {} : { mcpMethodHeader: method }),
    ...(named === undefined ? {} : { mcpNameHeader: named }),
  };
}

/** A body that was found to be one message, or some of them. */
function readable(body: unknown): JSONRPCMessage | readonly JSONRPCMessage[] {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- that is what was found
  return body as JSONRPCMessage | readonly JSONRPCMessage[];
}

function webRequest(url: string, given: McpHeaders): Request {
  const headers = readHeaders.flatMap((name): [string, string][] => {
    const value = given[name];
    return value === undefined ? [] : [[name, value]];
  });
  return new Request(url, { method: 'POST', headers });
}

async function writtenResponse(response: Response): Promise<WrittenResponse> {
  const type = response.headers.get('content-type');
  return new WrittenResponse(response.status, type === null ? {} : { 'content-type': type }, await response.text());
}

/** Makes the service of the protocol out of the endpoints that are tools. */
export function openMcp({ endpoints, services, log }: McpParts): McpService {
  const tools = makeTools(endpoints);
  const readers = new Map<string, ReadInput>(
    [...tools.values()].map((tool) => [tool.name, inputReader(tool.endpoint, services)]),
  );
  const readInput = (tool: Tool): ReadInput => {
    const read = readers.get(tool.name);
    if (!read) throw new Error(`${tool.name} has no reader`);
    return read;
  };

  const serve = (call: AgentCall): Served => ({
    ...serving(tools, call.caller, (tool, given) =>
      callTool({ services: services(), log, readInput }, tool, { given, call }),
    ),
    hasLeft: () => call.origin.hasLeft?.() ?? false,
    admitAnew: async () => {
      await setImmediate();
      return serve({ ...call, caller: await call.reauthorize() });
    },
  });

  /** Answers a message of an earlier revision; a batch costs its caller a read. */
  function respondOlder(call: AgentCall, message: JSONRPCMessage | readonly JSONRPCMessage[], version?: string) {
    if (Array.isArray(message)) services().limits.countRead(call.caller);
    return respondEarlier(message, version, serve(call));
  }

  const newest = createMcpHandler(
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what `answer` puts there
    ({ authInfo }) => serve(authInfo?.extra?.['call'] as AgentCall).newServer(),
    {
      legacy: 'reject',
      keepAliveMs: 0,
      maxSubscriptions: subscriptionsMax,
      onerror: (error) => log.debug({ err: error }, 'a request of an agent was rejected by the protocol'),
    },
  );

  async function respondNewest(call: AgentCall, headers: McpHeaders, message: unknown): Promise<WrittenResponse> {
    const authInfo = { token: '', clientId: '', scopes: [], extra: { call } };
    const accept = acceptedTypes.join(', ');
    const request = webRequest(`${services().config.baseUrl}/mcp`, { ...headers, accept });
    return writtenResponse(await newest.fetch(request, { parsedBody: message, authInfo }));
  }

  return {
    endpoints,
    respond: async ({ call, headers, message }) => {
      const objection = objectionOf(headers, message);
      if (objection) return objection;
      const version = headers['mcp-protocol-version'];
      if (isEarlierCall(message, version)) return respondOlder(call, message, version);
      const found = classifyInboundRequest({ httpMethod: 'POST', body: message, ...classifiedBy(headers) });
      if (found.kind === 'legacy') return respondOlder(call, readable(message), version);
      if (found.kind === 'reject') return rpcError(found.httpStatus, found, idOf(message));
      return respondNewest(call, headers, message);
    },
    close: () => newest.close(),
  };
}
