import { Client, type Dispatcher } from 'undici';
import { second } from '../../base/clock.ts';
import { addressCheck, type Resolve } from '../../outbound/address-guard.ts';
import { guardedConnector } from '../../outbound/guarded-connector.ts';
import { LateError, type ResponseHead } from './outcome.ts';

/** Bytes and milliseconds for reading the body of a response, which is ignored, to keep the connection usable. */
const spareBytesMax = 16_384;
const spareMsMax = 2 * second;

interface ExchangerParts {
  readonly origin: string;
  readonly networks: readonly string[];
  /** For a whole exchange. */
  readonly timeoutMs: number;
  readonly resolve?: Resolve | undefined;
  readonly ca?: string | undefined;
}

interface Post {
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The connection to one origin, under one judgement of addresses: one message after another. */
export class Exchanger {
  readonly origin: string;
  readonly networks: readonly string[];
  readonly #client: Client;
  readonly #timeoutMs: number;
  #isEnded = false;

  constructor({ origin, networks, timeoutMs, ...parts }: ExchangerParts) {
    this.origin = origin;
    this.networks = networks;
    this.#timeoutMs = timeoutMs;
    const check = addressCheck(new URL(origin).protocol, networks);
    this.#client = new Client(origin, {
      pipelining: 1,
      connect: guardedConnector({ check: check, timeoutMs, ...parts }),
      // One time for the whole exchange stands for those of its parts.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /** Returns whether it is unusable: it was ended, or something went wrong. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /**
   * Sends one request and returns the head of the response; redirects are not followed. Throws the connection's error.
   */
  async post(post: Post): Promise<ResponseHead> {
    const controller = new AbortController();
    let giveUp = () => {};
    // The client heeds the signal only once there is a connection.
    const late = new Promise<never>((_, reject) => {
      giveUp = () => {
        const error = new LateError();
        controller.abort(error);
        reject(error);
      };
    });
    const timer = setTimeout(() => giveUp(), this.#timeoutMs);
    try {
      return await Promise.race([this.#exchange(post, controller.signal), late]);
    } catch (error) {
      // Left to itself, the client would connect again at once.
      void this.destroy();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  async #exchange({ path, headers, body }: Post, signal: AbortSignal): Promise<ResponseHead> {
    const sent = { ...headers, 'user-agent': 'latchkey' };
    const response = await this.#client.request({ method: 'POST', path, headers: sent, body, signal });
    const { 'retry-after': retryAfter } = response.headers;
    await this.#leave(response.body);
    return { status: response.statusCode, retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined };
  }

  /** Reads what little there is of a body, so that the connection can be used again; ends the connection otherwise. */
  async #leave(body: Dispatcher.ResponseData['body']): Promise<void> {
    const timer = setTimeout(() => body.destroy(), spareMsMax);
    try {
      await body.dump({ limit: spareBytesMax });
    } finally {
      clearTimeout(timer);
    }
    if (!body.readableEnded) void this.destroy();
  }

  /** Ends the connection once nothing is under way. */
  async retire(): Promise<void> {
    this.#isEnded = true;
    await this.#client.close();
  }

  /** Ends the connection. */
  async destroy(): Promise<void> {
    this.#isEnded = true;
    await this.#client.destroy();
  }
}
