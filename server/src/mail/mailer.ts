import {
  createTransport,
  type NodemailerError,
  type SendMailOptions,
  type SMTPPoolOptions,
  type SMTPPoolSentMessageInfo,
  type Transporter,
} from 'nodemailer';
import addressparser from 'nodemailer/lib/addressparser';
import { type Clock, second } from '../base/clock.ts';
import { connectionText } from '../base/connection-error.ts';
import { ForbiddenAddressError, hiddenReason, InsideError } from '../outbound/address-guard.ts';
import { type GuardedSocket, guardedSocket } from '../outbound/guarded-socket.ts';
import { normalizeEmail } from '../text/email-address.ts';
import type { Mail, MailServer, MailSettings } from './mail.ts';
import { MailError, type MailFault } from './mail-error.ts';
import { oneLine } from './mail-layout.ts';

/** Sends mail over one server. */
export interface Mailer {
  /**
   * Sends one mail and returns the server's response, on one line of at most 300 characters. Waiting for a connection
   * counts against its 10 seconds. Throws MailError, and nothing else. Rules: MAIL-3, MAIL-4, MAIL-7.
   * @param signal aborted when the caller's time is over
   */
  send(mail: Mail, signal?: AbortSignal): Promise<string>;
  /** Closes every connection; mails in flight, and later ones, fail as `unreachable`. */
  close(): Promise<void>;
}

interface MailerParts {
  readonly clock: Clock;
  /** For one mail, 10 seconds in earnest. Rule: INVITE-17. */
  readonly mailMsMax?: number;
  /** A certificate authority in PEM that is trusted instead of the usual ones, for tests. */
  readonly ca?: string;
}

const connectionsMax = 5;
const idleMs = 5 * second;
const messageCharsMax = 300;
const secretChars = 20;
/** Replies that concern the server or the connection, not the mail: closing down, requires TLS, requires a login. */
const serverWide = new Set([421, 454, 530, 534, 535, 538]);

const addressRefused = 'The mail library would not deliver to exactly the stored address.';

/** Returns whether an address has the form of a stored one, and the library parses it as that and nothing else. */
function isExactly(address: string): boolean {
  if (normalizeEmail(address) !== address) return false;
  const [first, ...others] = addressparser(address);
  return others.length === 0 && first?.group === undefined && first?.name === '' && first.address === address;
}

/** The password as it may come back: as it is, and as it is sent. */
function passwordForms(login: MailSettings['login']): readonly string[] {
  const password = login?.password.expose() ?? '';
  if (!login || password === '') return [];
  const sent = [`\0${login.username}\0${password}`, password].map((text) => Buffer.from(text).toString('base64'));
  return [...sent, password];
}

/** A text that a server may have put the password into, without it. */
export function withoutPassword(raw: string, login: MailSettings['login']): string {
  return passwordForms(login).reduce((text, form) => text.replaceAll(form, '[secret]'), raw);
}

/**
 * Returns a server's message, safe for the log and for administrators. Servers quote what they reject, so everything
 * that could be a code or a token of the mail is removed, and so is the password. Rule: MAIL-2.
 */
function serverMessageOf(raw: string, mail: Mail, login: MailSettings['login']): string {
  const content = mail.text + mail.html;
  const line = withoutPassword(raw, login)
    .slice(0, 10 * messageCharsMax)
    .replace(/[\w-]{6,}/g, (run) => {
      const mayBeSecret = run.length >= secretChars || /\d/.test(run);
      return mayBeSecret && content.includes(run) ? '[…]' : run;
    });
  return [...oneLine(line).trim()].slice(0, messageCharsMax).join('');
}

function toFailure(error: unknown): NodemailerError {
  return error instanceof Error ? error : new Error(String(error));
}

/** Returns whether the error is a response of a mail server. */
function isServerMessage({ responseCode }: NodemailerError): boolean {
  return Number(responseCode) >= 200;
}

function faultOf({ code, responseCode }: NodemailerError): MailFault {
  if (code === 'ETIMEDOUT') return 'late';
  const isOfMail = code === 'EENVELOPE' || code === 'EMESSAGE';
  return isOfMail && !serverWide.has(responseCode ?? 0) ? 'refused' : 'unreachable';
}

/** The guard on the connections to a server; `null` for one that the operator chose. Rule: CONFIG-40. */
export function guardOf({ outboundNetworks: networks }: MailServer, timeoutMs: number): GuardedSocket | null {
  return networks === undefined ? null : guardedSocket({ networks, timeoutMs });
}

/** Returns the options of a connection; each step of it takes at most `mailMs` milliseconds. Rules: MAIL-3, MAIL-7. */
export function transportOptions(
  { host, port, security, login }: MailServer,
  { mailMs, guard }: { readonly mailMs: number; readonly guard: GuardedSocket | null },
): SMTPPoolOptions {
  return {
    ...(guard && { getSocket: guard.getSocket }),
    pool: true,
    host,
    port,
    maxConnections: connectionsMax,
    // Once, for a pooled connection that the server has ended meanwhile: nothing of the mail was sent then.
    maxRequeues: 1,
    idleTimeout: idleMs,
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    ...(login && { auth: { user: login.username, pass: login.password.expose() } }),
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

/**
 * Opens the connections. A message is checked once more before it is sent: the library may have rewritten its address.
 */
function openTransport(options: SMTPPoolOptions): Transporter<SMTPPoolSentMessageInfo> {
  const transport = createTransport({ ...options, pool: true });
  // Without a listener the error would be thrown; the mail that fails reports it.
  transport.on('error', () => {});
  transport.use('stream', ({ message, data }, done) => {
    const { to } = message.getEnvelope();
    done(to.length === 1 && to[0] === data.to ? null : new MailError('address', addressRefused));
  });
  return transport;
}

/**
 * Returns untrusted text for a header. Text that looks like an encoded word (RFC 2047) would be sent unchanged and
 * decoded by the reader, line ends included. Rule: MAIL-4.
 */
function headerText(text: string): string {
  return oneLine(text).replaceAll('=?', '= ?');
}

/** A mail as the library takes it. Rule: MAIL-4. */
function messageOf({ to, subject, text, html }: Mail, from: MailSettings['from'], date: Date): SendMailOptions {
  return {
    from: { name: headerText(from.name ?? ''), address: from.address },
    to,
    envelope: { from: from.address, to: [to] },
    subject: headerText(subject),
    text,
    html,
    date,
    headers: { 'Auto-Submitted': 'auto-generated' },
    xMailer: false,
  };
}

/**
 * Opens the mailer for a server; nothing is connected before the first mail. At most 5 connections, kept for 5 seconds
 * after a mail. Certificates are always checked. Rules: MAIL-3, MAIL-4, MAIL-7.
 */
export function openMailer(settings: MailSettings, { clock, mailMsMax = 10 * second, ca }: MailerParts): Mailer {
  const { from, login } = settings;
  const trusted = ca === undefined ? {} : { tls: { ca } };
  const guard = guardOf(settings, mailMsMax);
  const transport = openTransport({ ...transportOptions(settings, { mailMs: mailMsMax, guard }), ...trusted });
  const underWay = new Set<Promise<unknown>>();
  let isClosed = false;

  function mailError(error: unknown, mail: Mail, giveUp: AbortSignal): MailError {
    if (error instanceof MailError) return error;
    if (isClosed) return new MailError('unreachable', 'The connection to the mail server was closed.');
    const failure = toFailure(error);
    if (failure instanceof ForbiddenAddressError) return new MailError('unreachable', failure.message);
    // A mail server's own reply is passed on; any other error must not distinguish an open port from a closed one.
    if (guard?.isInside() === true && !isServerMessage(failure)) {
      const reason = serverMessageOf(hiddenReason(failure) ?? connectionText(failure), mail, login);
      return new MailError(giveUp.aborted ? 'late' : faultOf(failure), new InsideError().message, reason);
    }
    if (giveUp.aborted) return new MailError('late', 'The mail server did not take the mail in time.');
    return new MailError(faultOf(failure), serverMessageOf(connectionText(failure), mail, login));
  }

  async function attempt(mail: Mail, signal?: AbortSignal): Promise<string> {
    if (!isExactly(mail.to)) throw new MailError('address', addressRefused);
    const giveUp = new AbortController();
    const abort = () => giveUp.abort();
    // By hand: the timer of AbortSignal.timeout runs on after the mail, and a signal of AbortSignal.any holds on to its sources.
    const timer = setTimeout(abort, mailMsMax);
    signal?.addEventListener('abort', abort);
    if (signal?.aborted) abort();
    try {
      const message = messageOf(mail, from, new Date(clock.now()));
      const { response } = await transport.sendMail({ ...message, signal: giveUp.signal });
      return serverMessageOf(response, mail, login);
    } catch (error) {
      throw mailError(error, mail, giveUp.signal);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
  }

  return {
    send: (mail, signal) => {
      const sending = attempt(mail, signal);
      const known = sending.catch(() => {}).finally(() => underWay.delete(known));
      underWay.add(known);
      return sending;
    },
    close: async () => {
      isClosed = true;
      transport.close({ force: true });
      await Promise.all(underWay);
    },
  };
}
