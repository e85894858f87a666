import { z } from 'zod';
import type { Secret } from '../../../server/src/base/secret.ts';
import { CommandError } from '../failures.ts';
import { connectionFailure } from './connection-failure.ts';
import type { InstanceAddress } from './instance-address.ts';

const patienceMs = 15_000;

const metadataForm = z.object({ resource_name: z.literal('Latchkey') });
/** Errors in the form of the API, and in that of JSON-RPC. */
const errorForm = z.object({ error: z.object({ code: z.string(), message: z.string(), requestId: z.string() }) });
const rpcErrorForm = z.object({ jsonrpc: z.literal('2.0'), error: z.object({ message: z.string() }) });

interface Reply {
  readonly response: Response;
  /** The body, parsed; undefined when it is no JSON. */
  readonly body: unknown;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function ask(base: string, url: URL, init: RequestInit = {}): Promise<Reply> {
  try {
    const signal = AbortSignal.timeout(patienceMs);
    const response = await fetch(url, { ...init, redirect: 'manual', signal });
    return { response, body: parsed(await response.text()) };
  } catch (error) {
    const failure = connectionFailure(error);
    if (failure === null) throw error;
    const { isTls, text } = failure;
    const message = isTls
      ? `No encrypted connection to ${base}: ${text}. A certificate of your own authority is named by NODE_EXTRA_CA_CERTS=<file>; does the instance speak https there?`
      : `${base} cannot be reached: ${text}. Is the address right, and does the instance run?`;
    throw new CommandError('failed', message, { cause: error });
  }
}

/** Why the address of an instance leads to none that speaks MCP. */
function explainUnknownServer(base: string, { response: { status, headers }, body }: Reply): CommandError {
  const target = headers.get('location');
  if (status >= 300 && status < 400 && target !== null) {
    const origin = URL.canParse(target, base) ? new URL(target, base).origin : 'another address';
    return new CommandError('failed', `${base} leads on to ${origin}: give the address where the instance itself is`);
  }
  const error = errorForm.safeParse(body).data?.error;
  if (status === 404 && error) {
    return new CommandError('failed', `The instance at ${base} is too old for MCP: it must be brought up to date`);
  }
  const text = error ? `: ${error.message}` : '';
  if (status >= 500) return new CommandError('failed', `${base} answers ${status}${text}. Try again later`);
  if (error) return new CommandError('failed', `${base} answers ${status}${text}`);
  return new CommandError(
    'failed',
    `There is no Latchkey at ${base}: it answers ${status} in another form. Use the address in BASE_URL of the instance`,
  );
}

function explainError(base: string, { response: { status }, body }: Reply): CommandError {
  const message = rpcErrorForm.safeParse(body).data?.error.message;
  if (status === 401 && message !== undefined) {
    return new CommandError(
      'refused',
      `${base} rejects the token: ${message}. Create another one in the console or with POST /api/v1/personal-access-tokens`,
    );
  }
  const text = message === undefined ? '' : `: ${message}`;
  return new CommandError('failed', `${base} announces MCP, and answers ${status} to it${text}`);
}

/**
 * Makes sure that an address is that of an instance that speaks MCP, and that it takes the token, which goes nowhere
 * before. Throws CommandError that tells which of it is not so, and what to do. Rule: MCP-15.
 */
export async function checkInstance({ base, metadata, endpoint }: InstanceAddress, token: Secret): Promise<void> {
  const reply = await ask(base, metadata, { headers: { accept: 'application/json' } });
  if (!(reply.response.ok && metadataForm.safeParse(reply.body).success)) throw explainUnknownServer(base, reply);
  const response = await ask(base, endpoint, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token.expose()}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 'latchkey', method: 'ping' }),
  });
  if (!response.response.ok) throw explainError(base, response);
}
