import pino, { type DestinationStream, type Logger } from 'pino';
import pretty from 'pino-pretty';
import type { Config } from './config/config.ts';

/** What credentials look like wherever they stand: compact JWTs, with or without display prefix, and password hashes. */
const credentialForms = /(?:[A-Za-z0-9-]+_)?eyJ[\w-]{8,}\.[\w-]+\.[\w-]+|\$argon2id?\$[^\s"]+/g;
const secretFields = ['authorization', 'password', 'accessToken', 'refreshToken', 'x-session-token', 'token', 'hash'];

/** A text with every credential in it masked. */
export function maskCredentials(text: string): string {
  return text.replace(credentialForms, '[secret]');
}

/**
 * The log: JSON lines, or pretty ones on a terminal. Fields that hold secrets are redacted by name, and whatever looks
 * like a credential is masked in the finished line, so that a mistake elsewhere doesn't become a leak. Rule: RUN-6.
 */
export function createLog({ logLevel }: Pick<Config, 'logLevel'>, out: NodeJS.WriteStream): Logger {
  const lines: DestinationStream = out.isTTY ? pretty({ destination: out, sync: true }) : out;
  return pino(
    {
      level: logLevel,
      base: null,
      redact: { paths: secretFields.flatMap((name) => [`["${name}"]`, `*["${name}"]`]), censor: '[secret]' },
    },
    { write: (line) => lines.write(maskCredentials(line)) },
  );
}
