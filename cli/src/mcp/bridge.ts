import { PassThrough, type Readable, type Writable } from 'node:stream';
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import { callbackify } from 'node:util';
import {
  isJSONRPCErrorResponse,
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type JSONRPCRequest,
  type RequestId,
} from '@modelcontextprotocol/client';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { CommandError } from '../failures.ts';
import { exchange, explainFailure, type Link, type RpcError } from './exchange.ts';

interface BridgeParts extends Link {
  readonly stdin: Readable;
  readonly stdout: Writable;
  /** Prints a line for people. */
  readonly say: (line: string) => void;
}

/** A request that was forwarded and has no response yet. */
interface Pending {
  readonly message: JSONRPCRequest;
  readonly controller: AbortController;
  readonly done: Promise<void>;
}

type Deliver = (response: JSONRPCMessage) => void;

/** Milliseconds that the end of the input waits for pending responses. */
const drainMsMax = 5_000;
const invalidRequest = { code: -32_600, message: 'This is no message of JSON-RPC 2.0' };

/** Passes messages on between standard input and output and an instance. */
class Bridge {
  readonly #parts: BridgeParts;
  readonly #stdio: StdioServerTransport;
  readonly #input: PassThrough;
  readonly #pending = new Map<RequestId, Pending>();
  readonly #underWay = new Set<AbortController>();
  #protocolVersion: string | null = null;
  #failure: CommandError | null = null;

  constructor(parts: BridgeParts) {
    this.#parts = parts;
    // The transport drops everything as soon as its input ends: the end waits for running requests.
    this.#input = new PassThrough({ flush: callbackify(() => this.#drain()) });
    this.#stdio = new StdioServerTransport(this.#input, parts.stdout);
  }

  /** Resolves at the end of the input, or when the output has no reader any more. */
  async run(): Promise<void> {
    const { stdin } = this.#parts;
    const closed = new Promise<void>((resolve) => {
      this.#stdio.onclose = resolve;
    });
    this.#stdio.onmessage = (message) => this.#take(message);
    this.#stdio.onerror = (error) => this.#refuse(error);
    await this.#stdio.start();
    stdin.pipe(this.#input);
    await closed;
    for (const controller of this.#underWay) controller.abort();
    stdin.destroy();
    if (this.#failure) throw this.#failure;
  }

  #take(message: JSONRPCMessage): void {
    if (isJSONRPCRequest(message)) this.#forward(message);
    else if (!this.#isCancellation(message)) void this.#tell(message);
  }

  /** Over HTTP a request is given up by hanging up, in every revision. */
  #isCancellation(message: JSONRPCMessage): boolean {
    if (!isJSONRPCNotification(message) || message.method !== 'notifications/cancelled') return false;
    const id = message.params?.['requestId'];
    const pending = typeof id === 'string' || typeof id === 'number' ? this.#pending.get(id) : undefined;
    pending?.controller.abort();
    return pending !== undefined;
  }

  #forward(message: JSONRPCRequest): void {
    const controller = new AbortController();
    const pending = { message, controller, done: this.#answer(message, controller) };
    this.#pending.set(message.id, pending);
    void pending.done.finally(() => {
      if (this.#pending.get(message.id) === pending) this.#pending.delete(message.id);
    });
  }

  /** Forwards a message that gets no response. */
  async #tell(message: JSONRPCMessage): Promise<void> {
    const controller = new AbortController();
    try {
      await this.#exchange(message, controller, () => {});
    } catch (error) {
      if (!controller.signal.aborted) this.#parts.say(explainFailure(error, this.#parts.address).message);
    }
  }

  /** Makes sure that a request gets exactly one response, unless it was cancelled. */
  async #answer(message: JSONRPCRequest, controller: AbortController): Promise<void> {
    const { id, method } = message;
    const { signal } = controller;
    let isResponded = false;
    const deliver = (response: JSONRPCMessage) => {
      if (signal.aborted) return;
      if (isJSONRPCResultResponse(response) || isJSONRPCErrorResponse(response)) isResponded = true;
      if (method === 'initialize' && isJSONRPCResultResponse(response)) {
        const { protocolVersion } = response.result;
        if (typeof protocolVersion === 'string') this.#protocolVersion = protocolVersion;
      }
      this.#send(response);
    };
    const fail = (error: RpcError) => {
      if (!(signal.aborted || isResponded)) this.#send({ jsonrpc: '2.0', id, error });
    };
    try {
      await this.#exchange(message, controller, deliver);
      fail(explainFailure(null, this.#parts.address));
    } catch (error) {
      fail(explainFailure(error, this.#parts.address));
    }
  }

  async #exchange(message: JSONRPCMessage, controller: AbortController, deliver: Deliver): Promise<void> {
    this.#underWay.add(controller);
    try {
      const { signal } = controller;
      await exchange(this.#parts, { message, signal, deliver, protocolVersion: this.#protocolVersion });
    } finally {
      this.#underWay.delete(controller);
    }
  }

  #send(message: JSONRPCMessage): void {
    // The reader of the output is gone: that closes the transport.
    this.#stdio.send(message).catch(() => {});
  }

  /** Invalid messages get a response, too; one that cannot be read to its end ends the bridge. */
  #refuse(error: Error): void {
    if (error.message.includes('maximum size')) {
      this.#failure = new CommandError('failed', 'A message on the standard input is longer than 10 MB');
    } else if (error.name.includes('ZodError')) {
      this.#send({ jsonrpc: '2.0', error: invalidRequest });
    }
  }

  async #drain(): Promise<void> {
    // What came last is taken at the next turn.
    await turn();
    const finite = [...this.#pending.values()].filter(({ message }) => message.method !== 'subscriptions/listen');
    const timer = new AbortController();
    const late = pause(drainMsMax, undefined, { signal: timer.signal }).catch(() => {});
    await Promise.race([Promise.all(finite.map(({ done }) => done)), late]);
    timer.abort();
  }
}

/**
 * Forwards every message of MCP to an instance, unchanged, and the responses back, in the order in which they arrive;
 * requests run concurrently. Resolves at the end of the input, after running requests, or five seconds. A request that
 * fails gets an error; one that is cancelled gets no response. Rules: MCP-15, CLI-1.
 */
export async function runBridge(parts: BridgeParts): Promise<void> {
  await new Bridge(parts).run();
}
