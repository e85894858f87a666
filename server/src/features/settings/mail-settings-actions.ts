import { z } from 'zod';
import { refuseInput } from '../../base/errors.ts';
import { Secret } from '../../base/secret.ts';
import { type MailOauth2, type MailSettings, mailSecurities } from '../../mail/mail.ts';
import { defaultSecurity, isLoopback, mailHost, mailPort, mailSender, tokenUrl } from '../../mail/mail-address.ts';
import { plainText } from '../../text/plain-text.ts';

const oauth2Secret = z
  .string()
  .max(10_000)
  .optional()
  .describe(
    'May be left out to keep the stored one, as long as host, port, user, clientId and tokenUrl stay the same and the access token is not to go out less protected',
  );

/** The requested mail settings. Rules: FIT-25, MAIL-8, MAIL-12. */
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
  oauth2: z
    .strictObject({
      user: plainText({ min: 1, max: 320 })
        .describe('The mailbox that is signed in to')
        .meta({ examples: ['mailer@example.com'] }),
      clientId: plainText({ min: 1, max: 500 }).meta({ examples: ['latchkey-mail'] }),
      clientSecret: oauth2Secret.meta({ examples: ['Client-Secret-4711'] }),
      refreshToken: oauth2Secret.meta({ examples: ['Refresh-Token-4711'] }),
      tokenUrl: tokenUrl
        .describe('Where access tokens are issued for the refresh token')
        .meta({ examples: ['https://login.example.com/oauth2/token'] }),
    })
    .nullish()
    .describe('Signs in by OAuth 2.0 (XOAUTH2), in place of username and password'),
  from: mailSender.describe('The sender of mail').meta({ examples: ['Example <no-reply@example.com>'] }),
});
/** The requested mail settings, parsed. */
export type MailSettingsBody = z.output<typeof mailSettingsBody>;

type Destination = Pick<MailSettings, 'host' | 'port' | 'security'>;

/** Returns whether stored secrets would go to the same server as before, and not less protected. */
function isSameDestination({ host, port, security }: Destination, stored: MailSettings | null): boolean {
  const isEncrypted = security === 'tls' || security === 'starttls';
  return stored?.host === host && stored.port === port && (isEncrypted || security === stored.security);
}

/** Returns the given password, or the stored one if it goes to the same server and not in clear text. */
function passwordFor(
  input: MailSettingsBody & Pick<MailSettings, 'port' | 'security'>,
  stored: MailSettings | null,
): Secret | null {
  if (input.password !== undefined && input.password !== '') return new Secret(input.password);
  const isSame = isSameDestination(input, stored) && stored?.login?.username === input.username;
  return isSame ? (stored?.login?.password ?? null) : null;
}

/** Returns how to sign in by OAuth 2.0. Throws `invalidInput` where a secret is neither given nor may be kept. */
function oauth2For(
  { oauth2: input, ...destination }: { readonly oauth2: NonNullable<MailSettingsBody['oauth2']> } & Destination,
  stored: MailSettings | null,
): MailOauth2 {
  const { user, clientId, tokenUrl: url } = input;
  const known = stored?.oauth2;
  const isSame = known?.user === user && known.clientId === clientId && known.tokenUrl === url;
  const kept = isSame && isSameDestination(destination, stored) ? known : null;
  const secretOf = (field: 'clientSecret' | 'refreshToken') => {
    const secret = input[field] ? new Secret(input[field]) : kept?.[field];
    if (secret) return secret;
    const message = 'is required with this user, clientId, tokenUrl, host and port';
    throw refuseInput({ field: `body.oauth2.${field}`, message });
  };
  return {
    user,
    clientId,
    clientSecret: secretOf('clientSecret'),
    refreshToken: secretOf('refreshToken'),
    tokenUrl: url,
  };
}

/** Returns the requested settings with their defaults. Throws `invalidInput` for an incomplete sign-in. */
export function settingsOf(input: MailSettingsBody, stored: MailSettings | null): MailSettings {
  const { host, username, oauth2, from } = input;
  const given = input.port === undefined ? {} : { port: input.port };
  const asked = input.security ?? defaultSecurity({ host, ...given, hasLogin: Boolean(username || oauth2) });
  // An access token is as good as a password, and worth protecting on every way to another machine.
  const security = oauth2 && asked === 'opportunistic' && !isLoopback(host) ? 'starttls' : asked;
  const port = input.port ?? mailPort(security);
  const server = { host, port, security, from, login: null };
  if (username && oauth2) {
    throw refuseInput({ field: 'body.oauth2', message: 'must not be given together with username' });
  }
  if (oauth2) return { ...server, oauth2: oauth2For({ oauth2, ...server }, stored) };
  if (!username) return server;
  const password = passwordFor({ ...input, port, security }, stored);
  if (password) return { ...server, login: { username, password } };
  throw refuseInput({ field: 'body.password', message: 'is required with this username, host and port' });
}

/** Returns whether a secret of the settings is the stored one. */
export function keepsSecret({ login, oauth2 }: MailSettings, stored: MailSettings | null): boolean {
  if (login) return login.password === stored?.login?.password;
  const known = stored?.oauth2;
  return (
    oauth2 !== undefined && (oauth2.clientSecret === known?.clientSecret || oauth2.refreshToken === known?.refreshToken)
  );
}
