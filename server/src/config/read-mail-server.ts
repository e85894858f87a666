import type { z } from 'zod';
import { StartupError } from '../base/errors.ts';
import type { MailServer } from '../mail/mail.ts';
import { isLoopback } from '../mail/mail-address.ts';
import type { variables } from './config.ts';

type Values = z.infer<typeof variables>;

const needed = [
  'SMTP_OAUTH2_USER',
  'SMTP_OAUTH2_CLIENT_ID',
  'SMTP_OAUTH2_CLIENT_SECRET',
  'SMTP_OAUTH2_REFRESH_TOKEN',
  'SMTP_OAUTH2_TOKEN_URL',
] as const;

function wrong(variable: string, message: string): StartupError {
  return new StartupError(message, { variable });
}

/**
 * Returns the mail server of the configuration, with a sign-in by OAuth 2.0 where the variables for it are set; `null`:
 * none. Throws StartupError where only some of them are set. Rules: CONFIG-11, FIT-25.
 */
export function readMailServer(values: Values): MailServer | null {
  const { SMTP_URL: server, SMTP_OAUTH2_USER: user, SMTP_OAUTH2_CLIENT_ID: clientId } = values;
  const { SMTP_OAUTH2_CLIENT_SECRET: clientSecret, SMTP_OAUTH2_REFRESH_TOKEN: refreshToken } = values;
  const { SMTP_OAUTH2_TOKEN_URL: tokenUrl } = values;
  const missing = needed.filter((name) => values[name] === undefined);
  if (missing.length === needed.length) return server ?? null;
  if (!server) throw wrong('SMTP_URL', `SMTP_URL is not set: ${needed[0]} and the others need the mail server`);
  if (server.login) {
    throw wrong('SMTP_URL', `SMTP_URL holds a user and a password: together with ${needed[0]} it must hold neither`);
  }
  if (!user || !clientId || !clientSecret || !refreshToken || !tokenUrl) {
    throw wrong(String(missing[0]), `${missing[0]} is not set: signing in by OAuth 2.0 takes ${needed.join(', ')}`);
  }
  // An access token is as good as a password.
  const isOpen = server.security === 'opportunistic' && !isLoopback(server.host);
  const security = isOpen ? 'starttls' : server.security;
  return { ...server, security, oauth2: { user, clientId, clientSecret, refreshToken, tokenUrl } };
}
