import pino, { type DestinationStream, type Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { requestLine } from './terminal-lines.ts';

/**
 * Form of a possible compact JWT, anywhere in a text. Without the group it is none; it is matched all the same, so that
 * no character is scanned more than a few times.
 */
const jwtForm = /eyJ[\w-]{8,}(\.[\w-]+\.[\w-]+)?/g;
/** A password hash, up to where its text ends; a backslash begins an escape of JSON. */
const hashForm = /\$argon2id?\$[^\s"\\]+/g;
/** The secret of a link in a mail, of a service client or of a webhook. */
const secretForm = /lk[lst](?:_|%5[Ff])[\w-]{43}|whsec_[\w+/]{43}/g;
const secretFields = ['authorization', 'password', 'accessToken', 'refreshToken', 'x-session-token', 'token', 'hash'];

/** A text with every credential in it masked; display prefixes stay. A line of JSON is one afterwards too. */
export function maskCredentials(text: string): string {
  return text
    .replace(jwtForm, (run, rest: string | undefined) => (rest === undefined ? run : '[secret]'))
    .replace(secretForm, '[secret]')
    .replace(hashForm, '[secret]');
}

/** Lines for people on a terminal, where a request has one of its own form. Loaded there only. */
async function prettyLines(out: NodeJS.WriteStream): Promise<DestinationStream> {
  const { default: pretty, isColorSupported } = await import('pino-pretty');
  const others = pretty({ destination: out, sync: true, translateTime: 'SYS:HH:MM:ss', colorize: isColorSupported });
  return {
    write: (line) => {
      const shown = requestLine(line, isColorSupported);
      if (shown === null) others.write(line);
      else out.write(shown);
    },
  };
}

/**
 * Creates the log: JSON lines with the level as a word and the time as ISO 8601, or readable ones on a terminal. Secret fields are redacted by name, and everything that
 * looks like a credential is masked in the finished line, so that a mistake elsewhere doesn't become a leak. Rule:
 * RUN-6, FIT-102, FIT-103.
 */
export async function createLog({ logLevel }: Pick<Config, 'logLevel'>, out: NodeJS.WriteStream): Promise<Logger> {
  const lines: DestinationStream = out.isTTY ? await prettyLines(out) : out;
  return pino(
    {
      level: logLevel,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: secretFields.flatMap((name) => [`["${name}"]`, `*["${name}"]`]), censor: '[secret]' },
    },
    { write: (line) => lines.write(maskCredentials(line)) },
  );
}
