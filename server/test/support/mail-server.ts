import { EventEmitter, once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { domainToASCII } from 'node:url';
import { simpleParser } from 'mailparser';
import { SMTPServer, type SMTPServerOptions, type SMTPServerSession } from 'smtp-server';
import { mailedSecrets } from './mailed-secrets.ts';

const fixture = (name: string) => readFileSync(new URL(`./fixtures/mail-server/${name}`, import.meta.url), 'utf8');
/** The certificate of the server, for 127.0.0.1, in PEM. It is its own authority. */
export const mailCertificate = fixture('certificate.pem');
const key = fixture('key.pem');
const waitMsMax = 10_000;

/** A mail as the server got it. */
export interface ReceivedMail {
  /** Recipients of the envelope, whatever the header says. */
  readonly to: readonly string[];
  /** The sender of the envelope. */
  readonly sender: string;
  /** The From header. */
  readonly from: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
  /** Each header line, unfolded, in order. */
  readonly headers: readonly string[];
  readonly raw: string;
  readonly isEncrypted: boolean;
  /** Login of the connection; `null` for none. */
  readonly username: string | null;
}

/** Options of the server. */
export interface MailServerOptions {
  /** Without it the server knows no sign-in. */
  readonly login?: { readonly username: string; readonly password: string };
  /** Signs in by XOAUTH2 with one of these access tokens, and by nothing else. */
  readonly accessTokens?: ReadonlySet<string>;
  /** TLS from the first byte, STARTTLS by offer or by force; default `none`. The certificate is its own. */
  readonly security?: 'none' | 'offered' | 'required' | 'tls';
}

/** Faults of the server, by recipient. */
export interface MailFaults {
  /** The status it refuses a recipient with, 400 to 599; `null` for none. */
  readonly refuse?: (address: string) => number | null;
  /** The status it refuses a mail with, once it has it. */
  readonly refuseData?: (address: string) => number | null;
  /** Takes the mail and never answers. */
  readonly hang?: (address: string) => boolean;
  /** Closes the connection instead of answering to a recipient. */
  readonly dropAtRecipient?: (address: string) => boolean;
  /** Closes the connection instead of answering to a mail. */
  readonly dropAfterData?: (address: string) => boolean;
  /** For how long each mail takes. */
  readonly delayMs?: number;
  /** Greets no more connections than these with anything but 421. */
  readonly connectionsMax?: number;
  /** Refuses a name of EHLO, at the recipient as Postfix does. */
  readonly refuseName?: (name: string) => boolean;
  /** Puts each recipient off with 451, until it was asked for so many times. */
  readonly greylistTimes?: number;
  /** Closes each new connection before it says a word. */
  readonly dropConnections?: boolean;
}

function response(responseCode: number, text: string): Error {
  return Object.assign(new Error(text), { responseCode });
}

/** An address as it came over the wire: the library decodes IDNA. */
function onWire(address: string): string {
  const at = address.lastIndexOf('@') + 1;
  return address.slice(0, at) + (domainToASCII(address.slice(at)) || address.slice(at));
}

const noticeSubject =
  /^(?:Your password at|A personal access token was created at|The sign-in steps of|An administrator of .* ended your sessions)/;

/** A real mail server on 127.0.0.1 that misbehaves as a test wants. */
export class MailServer {
  /** Faults from now on. */
  faults: MailFaults = {};
  /** Every mail that it has taken, in order. */
  readonly mails: ReceivedMail[] = [];
  /** Notices about an account are kept apart: they come by themselves, between the mails that a test asks for. */
  readonly notices: ReceivedMail[] = [];
  /** Connections so far, and the maximum at once. */
  connections = 0;
  openMost = 0;
  /** Names that clients gave in EHLO. */
  readonly names = new Set<string>();
  /** Connections that were refused because there were too many. */
  turnedAway = 0;
  /** Recipients that were asked for, refused ones too. */
  readonly asked: string[] = [];
  readonly #happened = new EventEmitter().setMaxListeners(0);
  #open = 0;
  #hanging = 0;
  #port = 0;
  #options: MailServerOptions = {};
  #smtp: SMTPServer | null = null;

  static async start(options: MailServerOptions = {}): Promise<MailServer> {
    const server = new MailServer();
    await server.listen(options);
    return server;
  }

  get port(): number {
    return this.#port;
  }

  get url(): string {
    return `${this.#options.security === 'tls' ? 'smtps' : 'smtp'}://127.0.0.1:${this.#port}`;
  }

  /** Listens, after a stop at the same port, as what it was or as something else. */
  async listen(options: MailServerOptions = this.#options): Promise<void> {
    this.#options = options;
    const smtp = new SMTPServer(this.#behaviour());
    this.#smtp = smtp;
    // Clients that break off or dislike the certificate.
    smtp.on('error', () => {});
    smtp.server.prependListener('connection', (socket) => {
      this.connections += 1;
      this.#open += 1;
      this.openMost = Math.max(this.openMost, this.#open);
      socket.once('close', () => {
        this.#open -= 1;
        this.#happened.emit('change');
      });
      if (this.faults.dropConnections) socket.destroy();
    });
    smtp.listen(this.#port, '127.0.0.1');
    await once(smtp.server, 'listening');
    this.#port = (smtp.server.address() as AddressInfo).port;
  }

  /** Number of open connections. */
  get open(): number {
    return this.#open;
  }

  /** Number of mails without a response. */
  get hanging(): number {
    return this.#hanging;
  }

  #behaviour(): SMTPServerOptions {
    const { login, accessTokens, security = 'none' } = this.#options;
    return {
      key,
      cert: mailCertificate,
      secure: security === 'tls',
      disabledCommands: [...((login ?? accessTokens) ? [] : ['AUTH']), ...(security === 'none' ? ['STARTTLS'] : [])],
      allowInsecureAuth: true,
      authOptional: login === undefined && accessTokens === undefined,
      ...(accessTokens ? { authMethods: ['XOAUTH2'] } : {}),
      disableReverseLookup: true,
      onConnect: (_, done) => {
        const isFull = this.#open > (this.faults.connectionsMax ?? Number.POSITIVE_INFINITY);
        if (isFull) this.turnedAway += 1;
        done(isFull ? response(421, 'Too many concurrent connections') : null);
      },
      onAuth: ({ username, password, accessToken }, _, done) => {
        if (accessTokens) {
          if (accessTokens.has(accessToken ?? '')) return done(null, { user: username });
          return done(null, { data: { status: '401', schemes: 'bearer' } });
        }
        const isRight = username === login?.username && password === login?.password;
        done(isRight ? null : response(535, 'Invalid username or password'), { user: username });
      },
      onMailFrom: (_, session, done) => {
        const isRefused = security === 'required' && !session.secure;
        done(isRefused ? response(530, 'Must issue a STARTTLS command first') : null);
      },
      onRcptTo: (recipient, session, done) => {
        const address = onWire(recipient.address);
        const name = session.hostNameAppearsAs;
        this.names.add(name);
        this.asked.push(address);
        if (this.faults.refuseName?.(name)) {
          return done(response(504, `<${name}>: Helo command rejected: need fully-qualified hostname`));
        }
        const times = this.asked.filter((each) => each === address).length;
        if (times <= (this.faults.greylistTimes ?? 0)) return done(response(451, 'Greylisted, please try again later'));
        const status = this.faults.refuse?.(address) ?? null;
        if (this.faults.dropAtRecipient?.(address)) return this.#drop(session);
        done(status === null ? null : response(status, `<${address}> is not wanted here`));
      },
      onData: (stream, session, done) => {
        const parts: Buffer[] = [];
        stream.on('data', (part: Buffer) => parts.push(part));
        stream.on('end', () => void this.#take(Buffer.concat(parts), session, done));
      },
    };
  }

  async #take(raw: Buffer, session: SMTPServerSession, done: (error: Error | null) => void): Promise<void> {
    const { subject = '', text = '', html, from, headerLines } = await simpleParser(raw);
    for (const [, secret = ''] of text.matchAll(/#token=([\w-]+)/g)) mailedSecrets.add(secret);
    const to = session.envelope.rcptTo.map(({ address }) => onWire(address));
    const status = to.map((address) => this.faults.refuseData?.(address) ?? null).find((given) => given !== null);
    if (status !== undefined) return done(response(status, `Not taken: ${raw.toString()}`));
    if (this.faults.dropAfterData && to.some(this.faults.dropAfterData)) return this.#drop(session);
    if (this.faults.hang && to.some(this.faults.hang)) {
      this.#hanging += 1;
      return void this.#happened.emit('change');
    }
    const { delayMs = 0 } = this.faults;
    if (delayMs > 0) await setTimeout(delayMs);
    const isNotice = noticeSubject.test(subject);
    (isNotice ? this.notices : this.mails).push({
      to,
      sender: session.envelope.mailFrom ? session.envelope.mailFrom.address : '',
      from: from?.text ?? '',
      subject,
      text,
      html: html || '',
      headers: headerLines.map(({ line }) => line.replace(/\r?\n[ \t]+/g, ' ')),
      raw: raw.toString(),
      isEncrypted: session.secure,
      username: typeof session.user === 'string' ? session.user : null,
    });
    this.#happened.emit('change');
    done(null);
  }

  #drop({ id }: SMTPServerSession): void {
    for (const connection of this.#smtp?.connections ?? []) if (connection.id === id) connection._socket.destroy();
  }

  /** Waits until something holds of this server. Rejects after 10 seconds. */
  async until(holds: () => boolean, what = 'what was waited for'): Promise<void> {
    const signal = AbortSignal.timeout(waitMsMax);
    while (!holds()) {
      await once(this.#happened, 'change', { signal }).catch((cause: unknown) => {
        const known = this.mails.map(({ to }) => to.join()).join(', ');
        throw new Error(`not within ${waitMsMax} ms: ${what}; there is mail to: ${known || 'nobody'}`, { cause });
      });
    }
  }

  /** Returns the last mail to an address, as soon as there is one; `clear()` before another is expected. */
  async mailTo(address: string): Promise<ReceivedMail> {
    const find = () => this.mails.findLast(({ to }) => to.includes(address));
    await this.until(() => find() !== undefined, `a mail to ${address}`);
    return find() as ReceivedMail;
  }

  /** Returns the last notice to an address, as soon as there is one; `clear()` before another is expected. */
  async noticeTo(address: string): Promise<ReceivedMail> {
    const find = () => this.notices.findLast(({ to }) => to.includes(address));
    await this.until(() => find() !== undefined, `a notice to ${address}`);
    return find() as ReceivedMail;
  }

  /** Returns every mail to an address so far. */
  mailsTo(address: string): readonly ReceivedMail[] {
    return this.mails.filter(({ to }) => to.includes(address));
  }

  /** Forgets the mails that it has. */
  clear(): void {
    this.mails.length = 0;
    this.notices.length = 0;
    this.asked.length = 0;
  }

  /** Closes all connections and refuses new ones until it listens again. */
  async stop(): Promise<void> {
    const smtp = this.#smtp;
    if (!smtp) return;
    this.#smtp = null;
    const isClosed = once(smtp.server, 'close');
    smtp.close();
    for (const connection of smtp.connections) connection._socket.destroy();
    await isClosed;
  }
}

/** The link in the text of a mail. */
export function linkIn({ text }: Pick<ReceivedMail, 'text'>): string {
  const link = /https?:\/\/[^\s<>"]+/.exec(text)?.[0];
  if (link === undefined) throw new Error(`no link in: ${text}`);
  return link;
}

/** The token in the link of a mail: what stands after `#token=`. */
export function tokenIn(mail: Pick<ReceivedMail, 'text'>): string {
  const token = /#token=([\w-]+)/.exec(linkIn(mail))?.[1];
  if (token === undefined) throw new Error(`no token in: ${linkIn(mail)}`);
  return token;
}
