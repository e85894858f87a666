import { z } from 'zod';
import type { Encryption } from '../../access/encryption.ts';
import type { Config } from '../../config/config.ts';
import type { Database } from '../../db/database.ts';
import { type MailSettings, mailSecurities } from '../../mail/mail.ts';
import { shownSender } from '../../mail/mail-address.ts';
import { Secret } from '../../secret.ts';
import type { Services } from '../../services.ts';
import { normalizeEmail } from '../../text/email-address.ts';
import { selectSetting } from './setting-store.ts';

const purpose = 'mail-settings';

/** What the store has of the mail settings, once decrypted. */
const storedForm = z.object({
  host: z.string(),
  port: z.int(),
  security: z.enum(mailSecurities),
  login: z.object({ username: z.string(), password: z.string() }).nullable(),
  from: z.object({ name: z.string().nullable(), address: z.string() }),
});

/** Mail settings as they are stored. Rule: AUDIT-6. */
export function encryptMailSettings(encryption: Encryption, settings: MailSettings): Promise<string> {
  const login = settings.login && { ...settings.login, password: settings.login.password.expose() };
  return encryption.encrypt(purpose, new Secret(JSON.stringify({ ...settings, login })));
}

/** Mail settings that are stored; `null` where they cannot be read with the present key. */
export async function decryptMailSettings(encryption: Encryption, content: string): Promise<MailSettings | null> {
  const text = await encryption.decrypt(purpose, content);
  if (text === null) return null;
  const { login, ...settings } = storedForm.parse(JSON.parse(text.expose()));
  return { ...settings, login: login && { username: login.username, password: new Secret(login.password) } };
}

/** Whom mail comes from where nobody says it: who signs in at the server, if that is an address, or nobody in particular. */
function usualSender({ mailServer, baseUrl }: Pick<Config, 'mailServer' | 'baseUrl'>): MailSettings['from'] {
  const own = normalizeEmail(mailServer?.login?.username ?? '');
  return { name: null, address: own ?? `no-reply@${new URL(baseUrl).hostname}` };
}

interface ReaderParts {
  readonly config: Pick<Config, 'mailServer' | 'mailFrom' | 'baseUrl'>;
  readonly db: Database;
  readonly encryption: Encryption;
}

/**
 * Reads where mail goes out at the moment: as environment or file say, or else as an administrator stored it. The same
 * object comes out as long as nothing changes. Rules: AUDIT-7, CONFIG-11, MAIL-1.
 */
export function mailSettingsReader({ config, db, encryption }: ReaderParts): () => Promise<MailSettings | null> {
  const { mailServer, mailFrom } = config;
  if (mailServer) {
    const configured = { ...mailServer, from: mailFrom ?? usualSender(config) };
    return async () => configured;
  }
  let known: { readonly content: string; readonly settings: MailSettings | null } | null = null;

  return async () => {
    const content = await selectSetting(db.read, 'smtp');
    if (content === null) return null;
    if (known?.content !== content) {
      const stored = await decryptMailSettings(encryption, content);
      // Whoever asked at the same time may have been quicker, and its object is in use.
      if (known?.content !== content)
        known = { content, settings: stored && { ...stored, from: mailFrom ?? stored.from } };
    }
    return known.settings;
  };
}

/** Mail settings as they go out: all but the password. Rule: AUDIT-5. */
export const mailSettingsAnswer = z.object({
  configured: z.boolean(),
  source: z
    .enum(['configuration', 'stored'])
    .nullable()
    .describe('Where the settings come from: SMTP_URL, or what an administrator stored'),
  host: z.string().nullable(),
  port: z.int().nullable(),
  security: z.enum(mailSecurities).nullable(),
  username: z.string().nullable(),
  hasPassword: z.boolean(),
  from: z.string().nullable(),
  note: z.string().nullable().describe('What else there is to know, such as that stored settings cannot be read'),
});

const overridden = 'SMTP_URL is set in the configuration and comes before what is stored';
const unreadable = 'What is stored cannot be read with the present ENCRYPTION_KEY: set it anew';

/** Tells where mail goes out at the moment. Rules: AUDIT-5, MAIL-1. */
export async function describeMailSettings({
  db,
  config,
  mail,
}: Pick<Services, 'db' | 'config' | 'mail'>): Promise<z.output<typeof mailSettingsAnswer>> {
  const hasStored = (await selectSetting(db.read, 'smtp')) !== null;
  const settings = await mail.settings();
  if (!settings) {
    const nothing = { host: null, port: null, security: null, username: null, hasPassword: false, from: null };
    return { configured: false, source: null, ...nothing, note: hasStored ? unreadable : null };
  }
  const { host, port, security, login, from } = settings;
  return {
    configured: true,
    source: config.mailServer ? 'configuration' : 'stored',
    host,
    port,
    security,
    username: login?.username ?? null,
    hasPassword: login !== null,
    from: shownSender(from),
    note: config.mailServer && hasStored ? overridden : null,
  };
}
