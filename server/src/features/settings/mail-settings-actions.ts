import { z } from 'zod';
import { refuseInput } from '../../base/errors.ts';
import { Secret } from '../../base/secret.ts';
import { type MailSettings, mailSecurities } from '../../mail/mail.ts';
import { defaultSecurity, mailHost, mailPort, mailSender } from '../../mail/mail-address.ts';
import { plainText } from '../../text/plain-text.ts';

/** Mail settings in a request. */
export const mailSettingsBody = z.strictObject({
  host: mailHost.describe('Name or address of the mail server').meta({ examples: ['smtp.example.com'] }),
  port: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe('587, or 465 for security tls')
    .meta({ examples: [587] }),
  security: z
    .enum(mailSecurities)
    .optional()
    .describe(
      'tls from the first byte, starttls or not at all, opportunistic, or none. By default tls on port 465; else starttls where a password goes to another machine, and opportunistic without',
    )
    .meta({ examples: ['starttls'] }),
  username: plainText({ min: 0 })
    .nullish()
    .describe('Absent, null or empty: without signing in')
    .meta({ examples: ['mailer'] }),
  password: z
    .string()
    .max(1_000)
    .optional()
    .describe(
      'May be left out to keep the stored one, as long as host, port and username stay the same and it is not to go out less protected',
    )
    .meta({ examples: ['Correct-Horse-7'] }),
  from: mailSender.describe('The sender of mail').meta({ examples: ['Example <no-reply@example.com>'] }),
});
type Body = z.output<typeof mailSettingsBody>;

/** Returns the given password, or the stored one if it goes to the same server and not in clear text. */
function passwordFor(
  input: Body & Pick<MailSettings, 'port' | 'security'>,
  stored: MailSettings | null,
): Secret | null {
  if (input.password !== undefined && input.password !== '') return new Secret(input.password);
  const isEncrypted = input.security === 'tls' || input.security === 'starttls';
  if (!isEncrypted && input.security !== stored?.security) return null;
  const isSame = stored?.host === input.host && stored.port === input.port && stored.login?.username === input.username;
  return isSame ? (stored?.login?.password ?? null) : null;
}

/** Returns the requested settings with their defaults. Throws `invalidInput` for a user without a password. */
export function settingsOf(input: Body, stored: MailSettings | null): MailSettings {
  const { host, username, from } = input;
  const hasLogin = Boolean(username);
  const given = input.port === undefined ? {} : { port: input.port };
  const security = input.security ?? defaultSecurity({ host, ...given, hasLogin });
  const port = input.port ?? mailPort(security);
  if (!username) return { host, port, security, from, login: null };
  const password = passwordFor({ ...input, port, security }, stored);
  if (password) return { host, port, security, from, login: { username, password } };
  throw refuseInput({ field: 'body.password', message: 'is required with this username, host and port' });
}
