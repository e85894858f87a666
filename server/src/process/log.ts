import pino, { type DestinationStream, type Logger } from 'pino';
import type { Config } from '../config/config.ts';

/**
 * Form of a possible compact JWT, anywhere in a text. Without the group it is none; it is matched all the same, so that
 * no character is scanned more than a few times.
 */
const jwtForm = /eyJ[\w-]{8,}(\.[\w-]+\.[\w-]+)?/g;
/** A password hash, up to where its text ends; a backslash begins an escape of JSON. */
const hashForm = /\$argon2id?\$[^\s"\\]+/g;
/** The secret of a link in a mail, of a service client or of a webhook. */
const secretForm = /lk[lst]_[\w-]{43}|whsec_[\w+/]{43}/g;
const secretFields = ['authorization', 'password', 'accessToken', 'refreshToken', 'x-session-token', 'token', 'hash'];

/** A text with every credential in it masked; display prefixes stay. A line of JSON is one afterwards too. */
export function maskCredentials(text: string): string {
  return text
    .replace(jwtForm, (run, rest: string | undefined) => (rest === undefined ? run : '[secret]'))
    .replace(secretForm, '[secret]')
    .replace(hashForm, '[secret]');
}

/** Only who reads along needs it. */
async function prettyLines(out: NodeJS.WriteStream): Promise<DestinationStream> {
  const { default: pretty } = await import('pino-pretty');
  return pretty({ destination: out, sync: true });
}

/**
 * Creates the log: JSON lines, or pretty ones on a terminal. Secret fields are redacted by name, and everything that
 * looks like a credential is masked in the finished line, so that a mistake elsewhere doesn't become a leak. Rule:
 * RUN-6.
 */
export async function createLog({ logLevel }: Pick<Config, 'logLevel'>, out: NodeJS.WriteStream): Promise<Logger> {
  const lines: DestinationStream = out.isTTY ? await prettyLines(out) : out;
  return pino(
    {
      level: logLevel,
      base: null,
      redact: { paths: secretFields.flatMap((name) => [`["${name}"]`, `*["${name}"]`]), censor: '[secret]' },
    },
    { write: (line) => lines.write(maskCredentials(line)) },
  );
}
