import type { Readable } from 'node:stream';
import {
  createTransport,
  type SendMailOptions,
  type SMTPPoolOptions,
  type SMTPPoolSentMessageInfo,
  type Transporter,
} from 'nodemailer';
import addressparser from 'nodemailer/lib/addressparser';
import { type Clock, second } from '../base/clock.ts';
import { normalizeEmail } from '../text/email-address.ts';
import { openAccessTokens } from './access-tokens.ts';
import type { Mail, MailSettings } from './mail.ts';
import { type MailClient, usualClient } from './mail-client.ts';
import { MailError } from './mail-error.ts';
import { mailErrorOf } from './mail-failure.ts';
import { oneLine } from './mail-layout.ts';
import { serverMessageOf } from './mail-secrets.ts';
import { guardOf, transportOptions } from './mail-transport.ts';

/** Sends mail over one server. */
export interface Mailer {
  /** Mails that are sent at once, at most. */
  readonly connections: number;
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
  readonly client?: MailClient;
}

const closedText = 'The connection to the mail server was closed.';
const addressRefused = 'The mail library would not deliver to exactly the stored address.';

/** Returns whether an address has the form of a stored one, and the library parses it as that and nothing else. */
function isExactly(address: string): boolean {
  if (normalizeEmail(address) !== address) return false;
  const [first, ...others] = addressparser(address);
  return others.length === 0 && first?.group === undefined && first?.name === '' && first.address === address;
}

/**
 * Opens the connections. A message is checked once more before it is sent: the library may have rewritten its address.
 * @param streams gets what is read of each message, by the signal of its attempt
 */
function openTransport(
  options: SMTPPoolOptions,
  streams: WeakMap<AbortSignal, Readable>,
): Transporter<SMTPPoolSentMessageInfo> {
  const transport = createTransport({ ...options, pool: true });
  // Without a listener the error would be thrown; the mail that fails reports it.
  transport.on('error', () => {});
  transport.use('stream', ({ message, data }, done) => {
    const { to } = message.getEnvelope();
    const open = message.createReadStream.bind(message);
    message.createReadStream = (given) => {
      const stream = open(given);
      if (data.signal) streams.set(data.signal, stream);
      return stream;
    };
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
 * Opens the mailer for a server; nothing is connected before the first mail. Connections are kept for 5 seconds after a
 * mail. Rules: FIT-20, FIT-21, FIT-24, FIT-25, MAIL-3, MAIL-4, MAIL-7.
 */
export function openMailer(
  settings: MailSettings,
  { clock, mailMsMax = 10 * second, ca, client = usualClient }: MailerParts,
): Mailer {
  const { from, oauth2, outboundNetworks: networks } = settings;
  const guard = guardOf(settings, mailMsMax);
  const tokens = oauth2 ? openAccessTokens(oauth2, { clock, msMax: mailMsMax, networks }) : null;
  const accessToken = () => tokens?.present() ?? null;
  const streams = new WeakMap<AbortSignal, Readable>();
  const transport = openTransport(
    transportOptions(settings, { mailMs: mailMsMax, guard, client, tokens, ca }),
    streams,
  );
  const underWay = new Set<Promise<unknown>>();
  let isClosed = false;

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
      return serverMessageOf(response, mail, { access: settings, accessToken: accessToken() });
    } catch (error) {
      if (isClosed && !(error instanceof MailError)) throw new MailError('unreachable', closedText);
      throw mailErrorOf(error, {
        mail,
        settings,
        client,
        accessToken: accessToken(),
        isLate: giveUp.signal.aborted,
        isBegun: streams.get(giveUp.signal)?.readableDidRead === true,
        isInside: guard?.isInside() === true,
      });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
  }

  return {
    connections: client.connections,
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
