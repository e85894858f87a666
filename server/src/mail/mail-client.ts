import { isIP } from 'node:net';

/** How this service appears to mail servers. */
export interface MailClient {
  /** The name in EHLO: a host name, or an address in brackets. Rule: FIT-20. */
  readonly name: string;
  /** Connections at once, at least 1. Rule: FIT-21. */
  readonly connections: number;
}

/** A client without a configuration. */
export const usualClient: MailClient = { name: 'localhost', connections: 2 };

/** Returns the name that EHLO gives: the host of the public address (RFC 5321, section 4.1.3). Rule: FIT-20. */
function clientName(baseUrl: string): string {
  const host = new URL(baseUrl).hostname.replace(/^\[(.*)\]$/, '$1');
  if (isIP(host) === 4) return `[${host}]`;
  return isIP(host) === 6 ? `[IPv6:${host}]` : host;
}

/** Returns how a service with this configuration appears to mail servers. */
export function mailClientOf(config: { readonly baseUrl: string; readonly mailConnections: number }): MailClient {
  return { name: clientName(config.baseUrl), connections: config.mailConnections };
}
