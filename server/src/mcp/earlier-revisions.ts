import { setImmediate } from 'node:timers/promises';
import {
  type JSONRPCMessage,
  type JSONRPCRequest,
  ProtocolError,
  ProtocolErrorCode,
  SUPPORTED_PROTOCOL_VERSIONS,
  type Transport,
} from '@modelcontextprotocol/server';
import { ApiError } from '../base/errors.ts';
import { WrittenResponse } from '../http/written-response.ts';
import { rpcError, rpcResponse } from './rpc-responses.ts';
import { resultText, type ToolResult } from './tool-call.ts';

/** Server that answers one message once it is connected. */
interface Server {
  connect(way: Transport): Promise<void>;
}

/** Server of one caller's messages. */
export interface Serving {
  /** Makes a server for one message. */
  readonly newServer: () => Server;
  /** Calls a tool. Throws the error of the protocol for parameters that make no sense. */
  readonly callTool: (params: unknown) => Promise<ToolResult>;
  /**
   * The same for the caller as of now; awaited before each further message of a batch, so that other requests get their
   * turn. Throws the error of a credential that has ended.
   */
  readonly admitAnew: () => Promise<Serving>;
  /** Whether the client has left: nothing more is done for it then. */
  readonly hasLeft: () => boolean;
}

/** Number of members of a call in an earlier revision. */
const callMembers = 4;

/**
 * Returns whether a message is certainly a tool call in a revision before 2026-07-28. Most messages of agents are
 * calls, and checking them by the schemas of the protocol costs more than answering; any other message is left to
 * those.
 */
export function isEarlierCall(message: unknown, version: string | undefined): message is JSONRPCRequest {
  if (version !== undefined && !SUPPORTED_PROTOCOL_VERSIONS.includes(version)) return false;
  if (typeof message !== 'object' || message === null || Object.keys(message).length !== callMembers) return false;
  const { jsonrpc, id, method, params } = message as Partial<JSONRPCRequest>;
  const isNamed = typeof id === 'string' || Number.isSafeInteger(id);
  if (jsonrpc !== '2.0' || method !== 'tools/call' || !isNamed) return false;
  return typeof params === 'object' && !Array.isArray(params) && params !== null && !('_meta' in params);
}

/** Messages in a batch, at most, in the revision that had batches. */
const batchMax = 20;
/** Maximum characters of the responses to a batch. */
const batchTextMax = 10_000_000;
/** A response this short is sent all the same: operations that change something return no more. */
const shortTextMax = 65_536;

/** Returns the error for a message that is not processed, because the credential of its batch has ended. */
function refusedText({ id }: JSONRPCRequest, { message, code }: ApiError): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32_000, message, data: { code } } });
}

/** Answers one message over its own transport: nothing is shared with other messages, whatever ids they have. */
function respondToOne(server: Server, request: JSONRPCRequest): Promise<object> {
  return new Promise((resolve, reject) => {
    const way: Transport = {
      start: async () => {},
      close: async () => {},
      // Only responses have a destination.
      send: async (message) => {
        if (!('method' in message)) resolve(message);
      },
    };
    server.connect(way).then(() => way.onmessage?.(request), reject);
  });
}

/**
 * Answers the most frequent message without a server in between, which would cost as much as the rest of the call.
 * Returns JSON.
 */
async function respondToCall({ id, params }: JSONRPCRequest, callTool: Serving['callTool']): Promise<string> {
  const end = `"jsonrpc":"2.0","id":${JSON.stringify(id)}}`;
  try {
    return `{"result":${resultText(await callTool(params))},${end}`;
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return `{"error":${JSON.stringify({ code: error.code, message: error.message })},${end}`;
  }
}

async function responseToText(request: JSONRPCRequest, { newServer, callTool }: Serving): Promise<string> {
  if (request.method === 'tools/call') return respondToCall(request, callTool);
  return JSON.stringify(await respondToOne(newServer(), request));
}

/** Milliseconds that the calls of a batch may take together. */
const batchMsMax = 2_000;

const tooLarge = 'The responses to this batch are larger than 10 MB: call this again, alone';
const tooLong = 'The calls of this batch took too long: call this again, by itself';

/** Returns the response that replaces one for which there is no room, or one to a call that was not carried out. */
function notCarriedOut({ id }: JSONRPCRequest, message: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32_000, message } });
}

/** The answers to the messages of a batch, as far as there is room for them and time for the calls. */
class BatchAnswers {
  readonly texts: string[] = [];
  readonly #msMax: number;
  #left = batchTextMax;
  #tookMs = 0;

  constructor(msMax: number) {
    this.#msMax = msMax;
  }

  /** Why no further call is carried out; `null` while one may be. */
  objection(): string | null {
    if (this.#left <= 0) return tooLarge;
    return this.#tookMs > this.#msMax ? tooLong : null;
  }

  async add(request: JSONRPCRequest, serving: Serving): Promise<void> {
    const begunMs = performance.now();
    const text = await responseToText(request, serving);
    this.#tookMs += performance.now() - begunMs;
    const hasRoom = text.length <= this.#left || text.length <= shortTextMax;
    this.texts.push(hasRoom ? text : notCarriedOut(request, tooLarge));
    this.#left = hasRoom ? this.#left - text.length : 0;
  }
}

/**
 * Answers messages one after another. Each is admitted anew: those before it took time, and may have ended its credential.
 * Rules: MCP-16, MCP-17, SESSION-12.
 */
async function respondInOrder(
  requests: readonly JSONRPCRequest[],
  serving: Serving,
  msMax: number,
): Promise<readonly string[]> {
  const responses = new BatchAnswers(msMax);
  // A client that left while the batch was read is known to have left after this.
  if (requests.length > 1) await setImmediate();
  for (const [place, request] of requests.entries()) {
    const objection = responses.objection();
    if (objection !== null) {
      responses.texts.push(notCarriedOut(request, objection));
      continue;
    }
    try {
      const present = place === 0 ? serving : await serving.admitAnew();
      if (present.hasLeft()) return [];
      await responses.add(request, present);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return [
        ...responses.texts,
        ...requests.slice(place).map((withoutResponse) => refusedText(withoutResponse, error)),
      ];
    }
  }
  return responses.texts;
}

/** Returns the objection to serving these messages at all. */
function objectionTo(messages: readonly JSONRPCMessage[], version: string | undefined): WrittenResponse | null {
  const { InvalidRequest } = ProtocolErrorCode;
  if (messages.length > batchMax) {
    return rpcError(400, { code: InvalidRequest, message: `A batch has at most ${batchMax} messages` });
  }
  const begins = messages.some((message) => 'method' in message && message.method === 'initialize');
  if (begins && messages.length > 1) {
    return rpcError(400, { code: InvalidRequest, message: 'A request to initialize comes alone' });
  }
  if (begins || version === undefined || SUPPORTED_PROTOCOL_VERSIONS.includes(version)) return null;
  const message = `Unsupported protocol version (supported versions: ${SUPPORTED_PROTOCOL_VERSIONS.join(', ')})`;
  return rpcError(400, { code: -32_000, message });
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
 * @param msMax how long the calls of a batch may take together; what is right unless it is given
 */
export async function respondEarlier(
  body: JSONRPCMessage | readonly JSONRPCMessage[],
  version: string | undefined,
  { msMax = batchMsMax, ...serving }: Serving & { readonly msMax?: number },
): Promise<WrittenResponse> {
  const messages = isBatch(body) ? body : [body];
  const objection = objectionTo(messages, version);
  if (objection) return objection;
  const text = (await respondInOrder(messages.filter(isRequest), serving, msMax)).join(',');
  if (text === '') return new WrittenResponse(202, {}, '');
  return rpcResponse(200, isBatch(body) ? `[${text}]` : text);
}
