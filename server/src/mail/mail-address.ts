import { isIP } from 'node:net';
import { z } from 'zod';
import { Secret } from '../base/secret.ts';
import { normalizeEmail } from '../text/email-address.ts';
import { plainText } from '../text/plain-text.ts';
import { type MailSecurity, type MailSender, type MailServer, mailSecurities } from './mail.ts';

const hostForm = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?)*$/i;
const loopback = /^(localhost|127(\.\d{1,3}){3}|::1)$/i;

/** Returns whether a host is this machine. */
export function isLoopback(host: string): boolean {
  return loopback.test(host);
}

/** The name or address of a mail server. */
export const mailHost = z
  .string()
  .max(253)
  .refine((host) => hostForm.test(host) || isIP(host) !== 0, 'must be a host name or an IP address');

/** The port that mail servers take mail of programs at (RFC 8314), by how the connection is protected. */
export function mailPort(security: MailSecurity): number {
  return security === 'tls' ? 465 : 587;
}

/**
 * Returns the default security of a connection: port 465 speaks TLS from the first byte. A password leaves the machine
 * encrypted or not at all. Rule: MAIL-8.
 */
export function defaultSecurity(server: {
  readonly host: string;
  readonly port?: number;
  hasLogin: boolean;
}): MailSecurity {
  if (server.port === 465) return 'tls';
  return server.hasLogin && !isLoopback(server.host) ? 'starttls' : 'opportunistic';
}

const security = z.enum(mailSecurities);
const decoded = (text: string) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
};

/** Parses the URL of a mail server; `null` where it has parts that a mail server's cannot have. */
function parseUrl(text: string): URL | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isSmtp = url?.protocol === 'smtp:' || url?.protocol === 'smtps:';
  if (!url || !isSmtp || !/^\/?$/.test(url.pathname) || url.hash !== '' || url.port === '0') return null;
  return ['', 'security'].includes([...url.searchParams.keys()].join()) ? url : null;
}

/** Parses the login of a URL; `undefined` where it is incomplete or malformed. */
function readLogin({ username: user, password: word }: URL): MailServer['login'] | undefined {
  const [username, password] = [decoded(user), decoded(word)];
  if (username === null || password === null || (username === '') !== (password === '')) return undefined;
  return username === '' ? null : { username, password: new Secret(password) };
}

/** Parses the URL of a mail server; `null` for anything else. */
function readUrl(text: string): MailServer | null {
  const url = parseUrl(text);
  if (!url) return null;
  const isTls = url.protocol === 'smtps:';
  // An address of IPv6 stands in brackets in a URL, and nowhere else.
  const host = mailHost.safeParse(url.hostname.replace(/^\[(.*)\]$/, '$1'));
  const login = readLogin(url);
  const input = security.optional().safeParse(url.searchParams.get('security') ?? undefined);
  if (!host.success || login === undefined || !input.success) return null;
  if (isTls && input.data !== undefined && input.data !== 'tls') return null;
  const given = url.port === '' ? {} : { port: Number(url.port) };
  const usual = isTls ? 'tls' : defaultSecurity({ host: host.data, ...given, hasLogin: login !== null });
  const chosen = input.data ?? usual;
  return { host: host.data, port: given.port ?? mailPort(chosen), security: chosen, login };
}

/** The address of a mail server in the configuration. Rule: CONFIG-11. */
export const smtpUrl = z.string().transform((text, context) => {
  const server = readUrl(text);
  if (server) return server;
  context.addIssue({
    code: 'custom',
    message: `must be smtp://user:password@host:port or smtps://…, user and password percent-encoded or left out, with ?security=${mailSecurities.join('|')} at will`,
  });
  return z.NEVER;
});

/** Where access tokens for a mailbox are issued: over HTTP on this machine only. */
export const tokenUrl = z
  .url({ protocol: /^https?$/, error: 'must be an https address' })
  .max(2_000)
  .refine((address) => !/[@#]/.test(address), 'must not hold a name, a password or a fragment')
  .refine(
    (address) => address.startsWith('https:') || isLoopback(new URL(address).hostname.replace(/^\[(.*)\]$/, '$1')),
    'must be an https address',
  );

const withName = /^([^<>]*)<([^<>]*)>$/;
const senderName = plainText({ min: 0, max: 100 });

/** A sender as `name@host` or `Name <name@host>`; `null` for anything else. */
function readSender(text: string): MailSender | null {
  const [, shown = '', inside = text] = withName.exec(text.trim()) ?? [];
  const name = senderName.safeParse(shown.trim().replace(/^"([^"]*)"$/, '$1'));
  const address = normalizeEmail(inside);
  return name.success && address !== null ? { name: name.data || null, address } : null;
}

/** Sender of mail: an address, with or without a name. */
export const mailSender = z
  .string()
  .max(500)
  .transform((text, context) => {
    const sender = readSender(text);
    if (sender) return sender;
    context.addIssue({ code: 'custom', message: 'must be an address such as Example <no-reply@example.com>' });
    return z.NEVER;
  });

/** Formats a sender so that parsing returns the same. */
export function shownSender({ name, address }: MailSender): string {
  return name === null ? address : `${name} <${address}>`;
}
