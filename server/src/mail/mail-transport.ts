import type { SMTPPoolOptions } from 'nodemailer';
import { second } from '../base/clock.ts';
import { type GuardedSocket, guardedSocket } from '../outbound/guarded-socket.ts';
import type { AccessTokens } from './access-tokens.ts';
import type { MailServer } from './mail.ts';
import type { MailClient } from './mail-client.ts';

const idleMs = 5 * second;

/** Parts of the connections to a server. */
export interface TransportParts {
  /** Each step of a connection takes at most so long. */
  readonly mailMs: number;
  readonly guard: GuardedSocket | null;
  readonly client: MailClient;
  /** For a server that is signed in to by OAuth 2.0. */
  readonly tokens: AccessTokens | null;
  /** A certificate authority in PEM that is trusted instead of the usual ones, for tests. */
  readonly ca?: string | undefined;
}

/** The guard on the connections to a server; `null` for one that the operator chose. Rule: CONFIG-40. */
export function guardOf({ outboundNetworks: networks }: MailServer, timeoutMs: number): GuardedSocket | null {
  return networks === undefined ? null : guardedSocket({ networks, timeoutMs });
}

/** Signs in by OAuth 2.0 where the server is asked to, whatever it offers: without it, no mail is sent. */
function oauth2Options(user: string, tokens: AccessTokens) {
  type Done = (error: Error | null, token?: string) => void;
  async function provide(isRenewal: boolean, done: Done): Promise<void> {
    let token: string;
    try {
      token = await tokens.get(isRenewal);
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    done(null, token);
  }
  const provisionCallback = (_: string, isRenewal: boolean, done: Done) => void provide(isRenewal, done);
  return { auth: { type: 'OAuth2', user, provisionCallback }, forceAuth: true } as const;
}

function signInOptions({ login, oauth2 }: MailServer, tokens: AccessTokens | null): Partial<SMTPPoolOptions> {
  if (oauth2 && tokens) return oauth2Options(oauth2.user, tokens);
  return login ? { auth: { user: login.username, pass: login.password.expose() } } : {};
}

/**
 * Returns how a connection is encrypted. With `opportunistic`, and nothing secret to sign in with, any certificate is
 * better than none: an attacker who forges one can strip STARTTLS as well. Rules: FIT-24, MAIL-8.
 */
function tlsOptions({ security, login, oauth2 }: MailServer, ca: string | undefined): Partial<SMTPPoolOptions> {
  const isUnchecked = security === 'opportunistic' && login === null && oauth2 === undefined;
  const tls = { ...(ca === undefined ? {} : { ca }), ...(isUnchecked ? { rejectUnauthorized: false } : {}) };
  return {
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    opportunisticTLS: isUnchecked,
    tls,
  };
}

/** Returns the options of the connections to a server. Rules: FIT-20, FIT-21, MAIL-3, MAIL-7. */
export function transportOptions(
  server: MailServer,
  { mailMs, guard, client, tokens, ca }: TransportParts,
): SMTPPoolOptions {
  return {
    ...(guard && { getSocket: guard.getSocket }),
    pool: true,
    host: server.host,
    port: server.port,
    name: client.name,
    maxConnections: client.connections,
    // Once, for a pooled connection that the server has ended meanwhile: nothing of the mail was sent then.
    maxRequeues: 1,
    idleTimeout: idleMs,
    ...tlsOptions(server, ca),
    ...signInOptions(server, tokens),
    connectionTimeout: mailMs,
    greetingTimeout: mailMs,
    socketTimeout: mailMs,
    dnsTimeout: mailMs,
    // At once: a server that does not take leave would hold more sockets than the pool counts.
    socketCloseTimeout: 0,
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}
