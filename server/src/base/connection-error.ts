/** Text of OpenSSL for bytes that are no TLS: the other side speaks plainly on this port. */
const noTls = /wrong version number|packet length too long|http request|record layer failure/;
const openSslForm = /error:[0-9A-F]{8}:SSL routines:[^:]*:([^:]+)/;
const certificateCodes = /CERT|UNABLE_TO_|SELF_SIGNED/;

function placeOf(error: object): string {
  const { address, hostname, port } = error as { address?: unknown; hostname?: unknown; port?: unknown };
  const host = [address, hostname].find((part) => typeof part === 'string');
  if (typeof host !== 'string') return 'the address';
  const shown = host.includes(':') ? `[${host}]` : host;
  return typeof port === 'number' ? `${shown}:${port}` : shown;
}

function systemText(code: string, error: Error): string | null {
  const place = placeOf(error);
  switch (code) {
    case 'ECONNREFUSED':
      return `nothing listens at ${place} (${code})`;
    case 'ENOTFOUND':
      return `the host name ${place} cannot be found (${code})`;
    case 'EAI_AGAIN':
      return `the host name ${place} cannot be looked up now, DNS does not answer (${code})`;
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return `${place} cannot be reached (${code})`;
    default:
      return null;
  }
}

function tlsText(code: string, { message }: Error): string | null {
  const [, reason] = openSslForm.exec(message) ?? [];
  if (reason !== undefined || code === 'EPROTO') {
    if (noTls.test(message)) return 'the server does not speak TLS on this port';
    return `TLS failed: ${reason ?? message}`;
  }
  return certificateCodes.test(code) ? `the certificate is not accepted here: ${message} (${code})` : null;
}

/**
 * Says in one line why a connection could not be made: in the words of the other side, or in plain ones for what Node.js
 * and OpenSSL report by codes. Contains an address at most. Rule: FIT-101.
 */
export function connectionText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // A name with several addresses: each was tried, and the error of the whole says nothing.
  if (error instanceof AggregateError && error.errors.length > 0) {
    return [...new Set(error.errors.map((one) => connectionText(one)))].join('; ');
  }
  const code = 'code' in error ? String(error.code) : '';
  return (systemText(code, error) ?? tlsText(code, error) ?? (error.message || code)).replace(/\s+/g, ' ').trim();
}
