/** The reason why there was no response. */
export interface ConnectionFailure {
  /** The encryption failed, not the connection below it. */
  readonly isTls: boolean;
  /** In a few words, with the code of the failure. */
  readonly text: string;
}

const tlsCodes = /^(?:ERR_TLS_|ERR_SSL_|CERT_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_|HOSTNAME_MISMATCH|EPROTO)/;

const known: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ECONNRESET: 'the connection was cut',
  EAI_AGAIN: 'its name cannot be resolved',
  EHOSTUNREACH: 'there is no way there',
  ENETUNREACH: 'there is no way there',
  ENOTFOUND: 'its name is not known',
  ETIMEDOUT: 'it does not respond',
  TimeoutError: 'it does not respond',
  UND_ERR_CONNECT_TIMEOUT: 'it does not respond',
  UND_ERR_SOCKET: 'the connection was cut',
};

/** Returns the code at the root of an error; where it has none, its name, or its message. */
function codeOf(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  if (error.cause !== undefined) return codeOf(error.cause);
  if ('code' in error && typeof error.code === 'string') return error.code;
  return error.name === 'Error' ? error.message : error.name;
}

/** Returns the reason why a request got no response; `null` for any other error. */
export function connectionFailure(error: unknown): ConnectionFailure | null {
  const code = codeOf(error);
  if (code === null) return null;
  const isTls = tlsCodes.test(code);
  const isConnection = isTls || code in known || (error instanceof TypeError && error.message === 'fetch failed');
  return isConnection ? { isTls, text: code in known ? `${known[code]} (${code})` : code } : null;
}
