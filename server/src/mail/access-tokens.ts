import { z } from 'zod';
import { type Clock, minute, second } from '../base/clock.ts';
import { Secret } from '../base/secret.ts';
import { ForbiddenAddressError, hiddenReason, InsideError } from '../outbound/address-guard.ts';
import type { MailOauth2 } from './mail.ts';
import { messageWithoutSecrets } from './mail-secrets.ts';

const bytesMax = 65_536;
/** Of a token without a lifetime, and at most. */
const lifetimeMsUsual = 5 * minute;
/** Renewed so long before its end. */
const reserveMs = 60 * second;

/** A token endpoint that issues no access token. The message is for administrators: without secrets. */
export class TokenError extends Error {
  override readonly name = 'TokenError';
  /** Reason for the log, where administrators get another message. */
  readonly reason: string;
  /** Whether the endpoint may answer otherwise shortly. */
  readonly isRepeatable: boolean;

  constructor(message: string, { reason = message, isRepeatable = false } = {}) {
    super(message);
    this.reason = reason;
    this.isRepeatable = isRepeatable;
  }
}

/** Access tokens of one mailbox. */
export interface AccessTokens {
  /**
   * Returns a valid access token, the present one or a new one. Throws TokenError.
   * @param isRenewal whether the server refused the present one
   */
  get(isRenewal: boolean): Promise<string>;
  /** Returns the access token in use; `null`: none. */
  present(): string | null;
}

interface TokenParts {
  readonly clock: Clock;
  /** For one request to the token endpoint. */
  readonly msMax: number;
  /** Networks besides public addresses; absent where the operator chose the endpoint. Rule: CONFIG-40. */
  readonly networks?: readonly string[] | undefined;
}

const answerForm = z.object({
  access_token: z.string().min(1).optional(),
  expires_in: z.coerce.number().positive().optional().catch(undefined),
  refresh_token: z.string().min(1).optional(),
  error: z.string().optional(),
  error_description: z.string().optional(),
});

interface Exchange {
  readonly status: number;
  readonly text: string;
}

/** Sends a form to the token endpoint; no redirect is followed, and at most 64 KB are read. */
async function post(url: string, form: URLSearchParams, { msMax, networks }: TokenParts): Promise<Exchange> {
  const giveUp = new AbortController();
  const timer = setTimeout(() => giveUp.abort(), msMax);
  const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' };
  const request = {
    method: 'POST',
    headers,
    body: form.toString(),
    redirect: 'manual',
    signal: giveUp.signal,
  } as const;
  try {
    const { guardedFetch } = await import('../outbound/guarded-fetch.ts');
    const response = await (networks === undefined ? fetch(url, request) : guardedFetch(url, request, networks));
    const parts: Uint8Array[] = [];
    let size = 0;
    const incoming: AsyncIterable<Uint8Array> | Iterable<Uint8Array> = response.body ?? [];
    for await (const part of incoming) {
      size += part.byteLength;
      if (size > bytesMax) throw new TokenError('The response of the token endpoint is larger than 64 KB');
      parts.push(part);
    }
    return { status: response.status, text: Buffer.concat(parts).toString() };
  } finally {
    clearTimeout(timer);
  }
}

function parsed(text: string): z.output<typeof answerForm> {
  try {
    return answerForm.catch({}).parse(JSON.parse(text));
  } catch {
    return {};
  }
}

/** Opens the access tokens of a mailbox; nothing is asked for before the first one is needed. Rule: FIT-25. */
export function openAccessTokens(oauth2: MailOauth2, parts: TokenParts): AccessTokens {
  const { host } = new URL(oauth2.tokenUrl);
  let { refreshToken } = oauth2;
  let known: { readonly token: string; readonly untilMs: number } | null = null;
  let asking: Promise<string> | null = null;

  const shown = (text: string) => {
    const access = { login: null, oauth2: { ...oauth2, refreshToken } };
    return messageWithoutSecrets(text, access, known?.token ?? null);
  };

  function unreachable(error: unknown): TokenError {
    if (error instanceof TokenError) return error;
    const isForbidden = error instanceof ForbiddenAddressError;
    const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const message = isForbidden || error instanceof InsideError ? error.message : String(inner);
    const reason = `${host}: ${shown(hiddenReason(error) ?? message)}`;
    return new TokenError(`No access token from ${host}: ${shown(message)}`, { reason, isRepeatable: !isForbidden });
  }

  async function ask(): Promise<string> {
    const form = new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: refreshToken.expose(),
      client_id: oauth2.clientId,
      client_secret: oauth2.clientSecret.expose(),
    });
    const { status, text } = await post(oauth2.tokenUrl, form, parts).catch((error: unknown) => {
      throw unreachable(error);
    });
    const answer = parsed(text);
    if (answer.access_token === undefined || status !== 200) {
      const said = [answer.error, answer.error_description].filter((part) => part !== undefined).join(': ');
      const message = `No access token from ${host}: it answered ${status} ${shown(said)}`.trim();
      throw new TokenError(message, { isRepeatable: status >= 500 || status === 429 });
    }
    // Endpoints may replace the refresh token.
    if (answer.refresh_token !== undefined) refreshToken = new Secret(answer.refresh_token);
    const lifetimeMs = answer.expires_in === undefined ? lifetimeMsUsual : answer.expires_in * second;
    known = { token: answer.access_token, untilMs: parts.clock.now() + Math.max(0, lifetimeMs - reserveMs) };
    return known.token;
  }

  return {
    present: () => known?.token ?? null,
    get: async (isRenewal) => {
      if (!isRenewal && known && parts.clock.now() < known.untilMs) return known.token;
      // Connections that sign in at the same time share one request.
      asking ??= ask().finally(() => {
        asking = null;
      });
      return asking;
    },
  };
}
