import { Agent, fetch } from 'undici';
import { addressCheck, ForbiddenAddressError, InsideError, insideWatch } from './address-guard.ts';
import { guardedConnector } from './guarded-connector.ts';

const connectMsMax = 10_000;

interface FetchOptions {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  readonly redirect: 'manual' | 'error' | 'follow';
  readonly signal?: AbortSignal | undefined;
}

/** The innermost reason of a failure. */
function isForbidden(error: unknown): boolean {
  return error instanceof ForbiddenAddressError || (error instanceof Error && isForbidden(error.cause));
}

/**
 * Fetches from an address that an administrator stored: public, or in one of `networks`. The checked address is the one
 * of the connection, and each request has a connection of its own. Throws `ForbiddenAddressError` before anything is
 * sent to another address, and `InsideError` for any failure short of a response at an address that is not public.
 * Rule: CONFIG-40.
 */
export async function guardedFetch(url: string, options: FetchOptions, networks: readonly string[]): Promise<Response> {
  const inside = insideWatch(addressCheck(new URL(url).protocol, networks));
  const agent = new Agent({
    pipelining: 0,
    connect: guardedConnector({ check: inside.check, timeoutMs: connectMsMax }),
  });
  try {
    const { signal, ...others } = options;
    const response = await fetch(url, { ...others, dispatcher: agent, ...(signal ? { signal } : {}) });
    const { status, body } = response;
    return new Response(body as ReadableStream | null, { status, headers: [...response.headers] });
  } catch (error) {
    if (isForbidden(error)) throw new ForbiddenAddressError();
    throw inside.isInside() ? new InsideError(error) : error;
  } finally {
    void agent.close();
  }
}
