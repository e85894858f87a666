import type { Dispatcher } from 'undici';
import type { ConnectorResponse } from './connector.ts';
import { refuseResponse } from './connector-errors.ts';

/** Of a response with a body that is used. */
const bodyBytesMax = 10 * 1_048_576;
/** Of an error response: this much is read to keep the connection usable, and more ends it. */
const spareBytesMax = 65_536;

/** In the spelling of the response; a name may occur several times. */
function headersOf(raw: readonly Buffer[]): Map<string, string> {
  const found = new Map<string, string>();
  for (let place = 0; place + 1 < raw.length; place += 2) {
    const name = String(raw[place]).toLowerCase();
    const earlier = found.get(name);
    found.set(name, (earlier === undefined ? '' : `${earlier}, `) + String(raw[place + 1]));
  }
  return found;
}

/**
 * One request on one connection, as the connection pool tells of it. Nothing is decompressed here or below, so that the
 * bytes that are counted are the bytes that come.
 */
export class Attempt implements Dispatcher.DispatchHandlers {
  /** Rejects with a ApiError, or with the error of the connection. */
  readonly response: Promise<ConnectorResponse>;
  /** Fulfilled when the pool has let go of the request; never rejects. */
  readonly released: Promise<void>;
  /** It had a connection. */
  hasConnected = false;
  /** Part of a response has arrived. */
  hasStarted = false;
  #resolve: (response: ConnectorResponse) => void = () => {};
  #reject: (error: Error) => void = () => {};
  #release: () => void = () => {};
  #abort: (error: Error) => void = () => {};
  readonly #signal: AbortSignal;
  #head = { status: 0, contentType: undefined as string | undefined };
  #isSpare = false;
  #length = 0;
  readonly #chunks: Buffer[] = [];

  /** @param signal its reason, a ApiError, ends the attempt */
  constructor(signal: AbortSignal) {
    this.response = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.released = new Promise((resolve) => {
      this.#release = resolve;
    });
    this.#signal = signal;
    signal.addEventListener('abort', this.#onAbort);
  }

  readonly #onAbort = (): void => {
    const reason: unknown = this.#signal.reason;
    this.#end(reason instanceof Error ? reason : new Error('given up'));
  };

  #end(error: Error): void {
    this.#reject(error);
    this.#abort(error);
  }

  #leave(): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#release();
  }

  onConnect(abort: (error?: Error) => void): void {
    this.#abort = abort;
    this.hasConnected = true;
    // It was given up while it waited for a connection.
    if (this.#signal.aborted) this.#onAbort();
  }

  onResponseStarted(): void {
    this.hasStarted = true;
  }

  onHeaders(status: number, raw: Buffer[]): boolean {
    if (status < 200) return true;
    const headers = headersOf(raw);
    this.#head = { status, contentType: headers.get('content-type') };
    if (status > 299) {
      this.#isSpare = true;
      this.#resolve({ ...this.#head, body: Buffer.alloc(0) });
      return true;
    }
    const encoding = headers.get('content-encoding') ?? 'identity';
    if (encoding.trim().toLowerCase() !== 'identity') this.#end(refuseResponse('its response has a content encoding'));
    else if (Number(headers.get('content-length') ?? 0) > bodyBytesMax) this.#endTooLarge();
    return true;
  }

  onData(chunk: Buffer): boolean {
    this.#length += chunk.length;
    if (this.#length > (this.#isSpare ? spareBytesMax : bodyBytesMax)) this.#endTooLarge();
    else if (!this.#isSpare) this.#chunks.push(chunk);
    return true;
  }

  #endTooLarge(): void {
    this.#end(refuseResponse(`its response has more than ${bodyBytesMax} bytes`));
  }

  onComplete(): void {
    this.#resolve({ ...this.#head, body: Buffer.concat(this.#chunks) });
    this.#leave();
  }

  onError(error: Error): void {
    this.#reject(error);
    this.#leave();
  }
}
