import { z } from 'zod';
import type { SessionPrincipal } from '../../access/principal.ts';
import type { ForCaller } from '../../access/reauthorization.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { refuseInput } from '../../base/errors.ts';
import type { Origin } from '../../base/origin.ts';
import { Secret } from '../../base/secret.ts';
import { endpoint } from '../../http/endpoint.ts';
import { type MailSettings, mailSecurities } from '../../mail/mail.ts';
import { defaultSecurity, mailHost, mailPort, mailSender } from '../../mail/mail-address.ts';
import { requireOutbound } from '../../outbound/require-outbound.ts';
import type { Services } from '../../services.ts';
import { plainText } from '../../text/plain-text.ts';
import { auditedMailSettings } from './audited-settings.ts';
import { earlierMailSettingsResponse, toEarlierMailSettings } from './earlier-settings-actions.ts';
import { decryptMailSettings, describeMailSettings, encryptMailSettings, mailSettingsResponse } from './public.ts';
import { storeSetting } from './setting-actions.ts';
import { selectSetting } from './setting-store.ts';

/** Mail settings in a request. */
const body = z.strictObject({
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
type Body = z.output<typeof body>;

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
function settingsOf(input: Body, stored: MailSettings | null): MailSettings {
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

/** As earlier clients send them. Rule: FIT-79. */
const earlierBody = body.omit({ from: true }).extend({ fromEmail: body.shape.from });

interface Input extends ForCaller<SessionPrincipal> {
  readonly body: Body;
  readonly origin: Origin;
}

async function set(services: Services, input: Input): Promise<z.output<typeof mailSettingsResponse>> {
  const { caller, write, body: wanted, origin } = input;
  // Mail goes to public addresses with and without TLS.
  requireOutbound('body.host', { protocol: 'https:', hostname: wanted.host }, services.config.outboundNetworks);
  const { db, encryption, clock } = services;
  const { orgId, userId } = caller;
  const earlier = await selectSetting(db.read, 'smtp');
  const stored = earlier === null ? null : await decryptMailSettings(encryption, earlier);
  const settings = settingsOf(wanted, stored);
  const content = await encryptMailSettings(encryption, settings);
  const isDone = await write(async (tx) => {
    const isSecretKept = settings.login !== null && settings.login.password === stored?.login?.password;
    const setting = { name: 'smtp', content, by: userId, nowMs: clock.now() } as const;
    if (!(await storeSetting(tx, { ...setting, earlier, isSecretKept }))) return false;
    const changes = changesBetween(auditedMailSettings(stored), auditedMailSettings(settings));
    const record = { action: 'settings.mail-set', orgId, actor: caller, subjectId: null, origin } as const;
    await appendAudit(tx, services, { ...record, changes });
    return true;
  });
  return isDone ? describeMailSettings(services) : set(services, input);
}

/**
 * Rules: AUDIT-4, AUDIT-6, CONFIG-40, MAIL-8, MAIL-9, SCOPE-27. Takes a session: control over the mail server gives
 * access to all mail, password links included, which no scope of a token grants.
 */
export const setMailSettings = endpoint({
  method: 'PUT',
  path: '/settings/smtp',
  tag: 'Settings',
  summary: 'Set the mail server; takes effect at once. SMTP_URL of the configuration takes precedence',
  policy: { who: 'admin', sessionOnly: true },
  body,
  response: { 200: mailSettingsResponse },
  handle: set,
});

/** Rule: FIT-79. */
export const setEarlierMailSettings = endpoint({
  method: 'POST',
  path: '/configurationManager/smtpConfig',
  tag: 'Settings',
  summary: 'The same as PUT /settings/smtp, in the form of earlier clients',
  policy: { who: 'admin', sessionOnly: true },
  body: earlierBody,
  response: { 200: earlierMailSettingsResponse },
  async handle(services, { body: { fromEmail: from, ...given }, ...input }) {
    return toEarlierMailSettings(await set(services, { ...input, body: { ...given, from } }));
  },
});
