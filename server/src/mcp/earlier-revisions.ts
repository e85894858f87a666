import {
  type JSONRPCMessage,
  type JSONRPCRequest,
  ProtocolError,
  ProtocolErrorCode,
  SUPPORTED_PROTOCOL_VERSIONS,
  type Transport,
} from '@modelcontextprotocol/server';
import { WrittenAnswer } from '../http/written-answer.ts';
import { rpcAnswer, rpcRefusal } from './rpc-answers.ts';
import { resultText, type ToolResult } from './tool-call.ts';

/** What answers one message once it is told how. */
interface Server {
  connect(way: Transport): Promise<void>;
}

/** Who answers messages, for one caller. */
export interface Serving {
  /** A server that has answered nothing yet. */
  readonly newServer: () => Server;
  /** Calls a tool. Throws the error of the protocol for parameters that make no sense. */
  readonly callTool: (params: unknown) => Promise<ToolResult>;
  /** Waited for before each further message of a batch: others get their turn, and what it throws ends the batch. */
  readonly beforeNext: () => Promise<void>;
}

/** What a call in an earlier revision consists of, and nothing else. */
const callMembers = 4;

/**
 * Whether a message is beyond doubt a call of a tool in a revision before 2026-07-28. Calls are most of what agents send,
 * and finding this out by the schemas of the protocol costs more than answering; whatever looks in any way different is left to those.
 */
export function isEarlierCall(message: unknown, version: string | undefined): message is JSONRPCRequest {
  if (version !== undefined && !SUPPORTED_PROTOCOL_VERSIONS.includes(version)) return false;
  if (typeof message !== 'object' || message === null || Object.keys(message).length !== callMembers) return false;
  const { jsonrpc, id, method, params } = message as Partial<JSONRPCRequest>;
  const isNamed = typeof id === 'string' || Number.isSafeInteger(id);
  if (jsonrpc !== '2.0' || method !== 'tools/call' || !isNamed) return false;
  return typeof params === 'object' && !Array.isArray(params) && params !== null && !('_meta' in params);
}

/** How many messages come at once, in the revision that knew batches. */
const batchMax = 20;
/** Characters of the answers to a batch. */
const batchTextMax = 10_000_000;
/** So short an answer is given all the same: what changes something answers no more. */
const shortTextMax = 65_536;

/** Answers one message on a way of its own: nothing is shared with other messages, whatever ids they have. */
function answerOne(server: Server, request: JSONRPCRequest): Promise<object> {
  return new Promise((resolve, reject) => {
    const way: Transport = {
      start: async () => {},
      close: async () => {},
      // What is no answer would have nowhere to go.
      send: async (message) => {
        if (!('method' in message)) resolve(message);
      },
    };
    server.connect(way).then(() => way.onmessage?.(request), reject);
  });
}

/** What is asked for most, without a server in between: that costs as much as the rest of the call. Answers JSON. */
async function answerCall({ id, params }: JSONRPCRequest, callTool: Serving['callTool']): Promise<string> {
  const end = `"jsonrpc":"2.0","id":${JSON.stringify(id)}}`;
  try {
    return `{"result":${resultText(await callTool(params))},${end}`;
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return `{"error":${JSON.stringify({ code: error.code, message: error.message })},${end}`;
  }
}

/** What stands in the place of an answer for which there is no room, or of one to a call that was not carried out. */
function noRoom({ id }: JSONRPCRequest): string {
  const message = 'The answers to this batch are larger than 10 MB: call this again, by itself';
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32_000, message } });
}

/** Answers messages one after another, as far as there is room for the answers. Rule: MCP-16. */
async function answerInTurn(requests: readonly JSONRPCRequest[], { newServer, callTool, beforeNext }: Serving) {
  const answers: string[] = [];
  let left = batchTextMax;
  for (const request of requests) {
    if (left <= 0) {
      answers.push(noRoom(request));
      continue;
    }
    if (answers.length > 0) await beforeNext();
    const isCall = request.method === 'tools/call';
    const text = isCall ? await answerCall(request, callTool) : JSON.stringify(await answerOne(newServer(), request));
    const hasRoom = text.length <= left || text.length <= shortTextMax;
    answers.push(hasRoom ? text : noRoom(request));
    left = hasRoom ? left - text.length : 0;
  }
  return answers;
}

/** What speaks against serving these messages at all. */
function objectionTo(messages: readonly JSONRPCMessage[], version: string | undefined): WrittenAnswer | null {
  const { InvalidRequest } = ProtocolErrorCode;
  if (messages.length > batchMax) {
    return rpcRefusal(400, { code: InvalidRequest, message: `A batch has at most ${batchMax} messages` });
  }
  const begins = messages.some((message) => 'method' in message && message.method === 'initialize');
  if (begins && messages.length > 1) {
    return rpcRefusal(400, { code: InvalidRequest, message: 'A request to initialize comes alone' });
  }
  if (begins || version === undefined || SUPPORTED_PROTOCOL_VERSIONS.includes(version)) return null;
  const message = `Unsupported protocol version (supported versions: ${SUPPORTED_PROTOCOL_VERSIONS.join(', ')})`;
  return rpcRefusal(400, { code: -32_000, message });
}

function isBatch(body: JSONRPCMessage | readonly JSONRPCMessage[]): body is readonly JSONRPCMessage[] {
  return Array.isArray(body);
}

function isRequest(message: JSONRPCMessage): message is JSONRPCRequest {
  return 'method' in message && 'id' in message;
}

/**
 * Answers what came in a revision before 2026-07-28. Each request is answered by itself, those of a batch one after
 * another; nothing is under way that a notification could be about, so those are only acknowledged. Rules: MCP-1, MCP-14.
 * @param body one message, or some of them
 * @param version what the header `mcp-protocol-version` says
 */
export async function answerEarlier(
  body: JSONRPCMessage | readonly JSONRPCMessage[],
  version: string | undefined,
  serving: Serving,
): Promise<WrittenAnswer> {
  const messages = isBatch(body) ? body : [body];
  const objection = objectionTo(messages, version);
  if (objection) return objection;
  const text = (await answerInTurn(messages.filter(isRequest), serving)).join(',');
  if (text === '') return new WrittenAnswer(202, {}, '');
  return rpcAnswer(200, isBatch(body) ? `[${text}]` : text);
}
