import { type JSONRPCMessage, SdkHttpError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { z } from 'zod';
import type { Secret } from '../../../server/src/base/secret.ts';
import { connectionFailure } from './connection-failure.ts';
import type { InstanceAddress } from './instance-address.ts';

/** Address of an instance, and the token for it. */
export interface Link {
  readonly address: InstanceAddress;
  readonly token: Secret;
}

interface Exchange {
  readonly message: JSONRPCMessage;
  /** Version that `initialize` agreed on; `null` before, and for messages that state it themselves. */
  readonly protocolVersion: string | null;
  /** Aborts the exchange. */
  readonly signal: AbortSignal;
  /** Called for each message of the response, in order. */
  readonly deliver: (response: JSONRPCMessage) => void;
}

/** An error as JSON-RPC tells it. */
export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

const rpcErrorForm = z.object({
  error: z.object({ code: z.int(), message: z.string(), data: z.unknown().optional() }),
});
/** The first of those that JSON-RPC leaves to servers (section 5.1). */
const refusedCode = -32_000;

const isStreamType = (response: Response) =>
  response.headers.get('content-type')?.toLowerCase().startsWith('text/event-stream') ?? false;

/**
 * Sends one message and delivers the responses until the last one. Rejects with an error that `explainFailure`
 * explains.
 */
export async function exchange({ address, token }: Link, parts: Exchange): Promise<void> {
  const { message, protocolVersion, signal, deliver } = parts;
  let isStream = false;
  const watch = async (url: string | URL, init?: RequestInit): Promise<Response> => {
    // The instance holds nothing between requests, so it has no stream of its own.
    if (init?.method !== 'POST') return new Response(null, { status: 405 });
    const response = await fetch(url, init);
    isStream = response.ok && isStreamType(response);
    return response;
  };
  const transport = new StreamableHTTPClientTransport(address.endpoint, {
    requestInit: { headers: { authorization: `Bearer ${token.expose()}` } },
    fetch: watch,
    ...(protocolVersion === null ? {} : { protocolVersion }),
  });
  transport.onmessage = deliver;
  const aborted = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  try {
    await transport.start();
    await new Promise<void>((resolve, reject) => {
      transport
        .send(message, { requestSignal: signal, onRequestStreamEnd: resolve })
        .then(() => (isStream ? aborted : undefined))
        .then(resolve, reject);
    });
  } finally {
    await transport.close();
  }
}

function parsed(text: unknown): unknown {
  try {
    return typeof text === 'string' ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the reason why a message failed: the message of the instance, where there is one. */
export function explainFailure(error: unknown, { base }: InstanceAddress): RpcError {
  if (error instanceof SdkHttpError) {
    const { status, data } = error;
    const rpcError = rpcErrorForm.safeParse(parsed(data['text'])).data?.error;
    return rpcError ?? { code: refusedCode, message: `${base} answers ${status}` };
  }
  const failure = connectionFailure(error);
  if (failure) return { code: refusedCode, message: `${base} cannot be reached: ${failure.text}` };
  return { code: refusedCode, message: `${base} gives a response that is not of the protocol` };
}
