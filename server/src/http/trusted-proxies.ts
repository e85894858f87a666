import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Logger } from 'pino';
import { networkMatcher } from '../base/networks.ts';

const withPort = /^(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/;

/**
 * Returns the address in an entry of `X-Forwarded-For`, which may have a port and brackets; `null` for anything else.
 */
export function addressIn(entry: string): string | null {
  const text = entry.trim();
  const [, inBrackets, beforePort] = withPort.exec(text) ?? [];
  const address = inBrackets ?? beforePort ?? text;
  // A zone names an interface of the machine that wrote it (RFC 4007, section 11).
  return isIP(address) === 0 ? null : address.replace(/%.*$/, '');
}

/**
 * Tells whether a peer, or an entry of its header, is a proxy whose forwarded headers count. Rule: CONFIG-16.
 * @param list the present addresses and networks; the same array as long as nothing changes
 */
export function trustedProxies(list: () => readonly string[]): (address: string) => boolean {
  const matches = networkMatcher(list);
  return (entry) => matches(addressIn(entry) ?? '');
}

const forwardingHeaders = ['x-forwarded-for', 'forwarded', 'x-real-ip'] as const;

/**
 * Makes what warns once of a proxy that TRUST_PROXY does not name, and once of one that it does name and that names its
 * clients in another header than the one that counts: all of their clients are one network. Rules: CONFIG-16, FIT-47.
 */
export function forwardingWarnings(
  log: Logger,
  isTrusted: (address: string) => boolean,
): (message: IncomingMessage) => void {
  let isStrangerLogged = false;
  let isOtherHeaderLogged = false;
  return (message) => {
    if (isStrangerLogged && isOtherHeaderLogged) return;
    const header = forwardingHeaders.find((name) => message.headers[name] !== undefined);
    const peer = message.socket.remoteAddress;
    if (header === undefined || peer === undefined) return;
    if (isTrusted(peer)) {
      if (header === 'x-forwarded-for' || isOtherHeaderLogged) return;
      isOtherHeaderLogged = true;
      log.warn(
        { peer, header },
        'a trusted proxy names its client in a header that is ignored: only X-Forwarded-For counts',
      );
    } else if (!isStrangerLogged) {
      isStrangerLogged = true;
      log.warn({ peer, header }, 'a forwarded header is ignored: its sender is not in TRUST_PROXY');
    }
  };
}
