import { z } from 'zod';
import { Secret } from '../../base/secret.ts';
import type { Config } from '../../config/config.ts';
import type { Database } from '../../db/database.ts';
import { components } from '../../http/schemas.ts';
import type { Encryption } from '../../keys/encryption.ts';
import type { MailSettings } from '../../mail/mail.ts';
import {
  parseMailSettings,
  shownMailFields,
  shownMailSettings,
  storedMailSettings,
} from '../../mail/stored-mail-settings.ts';
import { emailTrusts, type OidcSettings, oidcRedirectUri } from '../../oidc/oidc.ts';
import type { Services } from '../../services.ts';
import { normalizeEmail } from '../../text/email-address.ts';
import { makersAnswer, toMakers } from './setting-makers.ts';
import { selectSetting, selectSettingMakers } from './setting-store.ts';

const purpose = 'mail-settings';

/** Mail settings as they are stored. Rule: AUDIT-6. */
export function encryptMailSettings(encryption: Encryption, settings: MailSettings): Promise<string> {
  return encryption.encrypt(purpose, new Secret(storedMailSettings(settings)));
}

/** Mail settings that are stored; `null` where they cannot be read with the present key. */
export async function decryptMailSettings(
  encryption: Pick<Encryption, 'decrypt'>,
  content: string,
): Promise<MailSettings | null> {
  const text = await encryption.decrypt(purpose, content);
  return text && parseMailSettings(text.expose());
}

const oidcPurpose = 'oidc-settings';

const storedOidcForm = z.object({
  issuer: z.string(),
  clientId: z.string(),
  clientSecret: z.string(),
  allowedDomains: z.array(z.string()),
  groupIds: z.array(z.string()),
  // Earlier releases stored none.
  emailTrust: z.enum(emailTrusts).default('claim'),
  changedAtMs: z.number().nullable().default(null),
});

/** Settings of single sign-on as they are stored. Rule: AUDIT-6. */
export function encryptOidcSettings(encryption: Encryption, settings: OidcSettings): Promise<string> {
  const content = { ...settings, clientSecret: settings.clientSecret.expose() };
  return encryption.encrypt(oidcPurpose, new Secret(JSON.stringify(content)));
}

/** Settings of single sign-on that are stored; `null` where they cannot be read with the present key. */
export async function decryptOidcSettings(
  encryption: Pick<Encryption, 'decrypt'>,
  content: string,
): Promise<OidcSettings | null> {
  const text = await encryption.decrypt(oidcPurpose, content);
  if (text === null) return null;
  const { clientSecret, ...settings } = storedOidcForm.parse(JSON.parse(text.expose()));
  return { ...settings, clientSecret: new Secret(clientSecret) };
}

/** Returns the default sender of mail: the login at the server, if that is an address, or a no-reply address. */
function usualSender({ mailServer, baseUrl }: Pick<Config, 'mailServer' | 'baseUrl'>): MailSettings['from'] {
  const own = normalizeEmail(mailServer?.login?.username ?? mailServer?.oauth2?.user ?? '');
  return { name: null, address: own ?? `no-reply@${new URL(baseUrl).hostname}` };
}

type SettingName = 'smtp' | 'oidc';

interface ReaderParts {
  /** The present configuration: the same object as long as nothing changes. */
  readonly config: () => Config;
  readonly db: Database;
  readonly encryption: Pick<Encryption, 'decrypt'>;
}

/** Sources of the value of a setting. */
interface SettingSource<T> {
  readonly name: SettingName;
  /** Value from environment or file; `null`: none. Rule: CONFIG-23. */
  readonly configured: (config: Config) => T | null;
  /** Returns the stored value; `null` where it cannot be read. */
  readonly decrypt: (encryption: Pick<Encryption, 'decrypt'>, content: string) => Promise<T | null>;
  /** Completes the stored value by the configuration. */
  readonly completed: (stored: T, config: Config) => T;
}

/** Reads a setting: as environment or file say, or else as an administrator stored it. The same object comes out as long as nothing changes. */
function settingReader<T>(source: SettingSource<T>, { config, db, encryption }: ReaderParts): () => Promise<T | null> {
  let known: { readonly config: Config; readonly content: string | null; readonly value: T | null } | null = null;

  async function read(present: Config, content: string | null): Promise<T | null> {
    const stored = content === null ? null : await source.decrypt(encryption, content);
    return source.configured(present) ?? (stored && source.completed(stored, present));
  }

  return async () => {
    const present = config();
    const content = source.configured(present) ? null : await selectSetting(db.read, source.name);
    const isKnown = () => known?.config === present && known.content === content;
    if (isKnown()) return known?.value ?? null;
    const value = await read(present, content);
    // A concurrent call may have been faster, and its object is in use.
    if (!isKnown()) known = { config: present, content, value };
    return known?.value ?? null;
  };
}

/** Returns a function that reads the present mail settings. Rules: AUDIT-7, CONFIG-11, MAIL-1. */
export function mailSettingsReader(parts: ReaderParts): () => Promise<MailSettings | null> {
  return settingReader(
    {
      name: 'smtp',
      configured: (config) =>
        config.mailServer && { ...config.mailServer, from: config.mailFrom ?? usualSender(config) },
      decrypt: decryptMailSettings,
      completed: (stored, { mailFrom, outboundNetworks }) => ({
        ...stored,
        from: mailFrom ?? stored.from,
        outboundNetworks,
      }),
    },
    parts,
  );
}

/** Returns a function that reads the present provider of single sign-on. Rules: AUDIT-7, AUTH-48, CONFIG-20. */
export function oidcSettingsReader(parts: ReaderParts): () => Promise<OidcSettings | null> {
  return settingReader(
    {
      name: 'oidc',
      configured: ({ oidc }) => oidc,
      decrypt: decryptOidcSettings,
      completed: (stored, { outboundNetworks }) => ({ ...stored, outboundNetworks }),
    },
    parts,
  );
}

/** Mail settings as they go out: all but what is secret. Rules: AUDIT-5, FIT-25. */
export const mailSettingsResponse = z.object({
  configured: z.boolean(),
  source: z
    .enum(['configuration', 'stored'])
    .nullable()
    .describe('The source of the settings: SMTP_URL, or the settings stored by an administrator'),
  ...shownMailFields.shape,
  note: z.string().nullable().describe('Further information, such as that stored settings cannot be decrypted'),
  ...makersAnswer.shape,
});
components.add(mailSettingsResponse, { id: 'MailSettings' });

const overridden = 'The configuration differs, and takes precedence over the stored settings';
const unreadable = 'The stored settings cannot be decrypted with the present ENCRYPTION_KEY: set them again';

/** Describes the present mail settings. Rules: AUDIT-5, MAIL-1. */
export async function describeMailSettings({
  db,
  config,
  mail,
}: Pick<Services, 'db' | 'config' | 'mail'>): Promise<z.output<typeof mailSettingsResponse>> {
  const makers = toMakers(await selectSettingMakers(db.read, 'smtp'));
  const hasStored = makers.updatedBy !== null;
  const settings = await mail.settings();
  const shown = shownMailSettings(settings);
  if (!settings) return { configured: false, source: null, ...shown, note: hasStored ? unreadable : null, ...makers };
  const source = config.mailServer ? 'configuration' : 'stored';
  return { configured: true, source, ...shown, note: config.mailServer && hasStored ? overridden : null, ...makers };
}

/** Settings of single sign-on as they go out: all but the secret. Rule: AUDIT-5. */
export const oidcSettingsResponse = z.object({
  configured: z.boolean(),
  source: z
    .enum(['configuration', 'stored'])
    .nullable()
    .describe('OIDC_ISSUER, or the settings stored by an administrator'),
  issuer: z.string().nullable(),
  clientId: z.string().nullable(),
  hasClientSecret: z.boolean(),
  allowedDomains: z.array(z.string()),
  groupIds: z.array(z.string()),
  emailTrust: z.enum(emailTrusts).nullable().describe('Which addresses of the issuer count as verified'),
  redirectUri: z.string().describe('The address to register with the provider'),
  note: z.string().nullable().describe('Further information, such as that stored settings cannot be decrypted'),
  ...makersAnswer.shape,
});
components.add(oidcSettingsResponse, { id: 'OidcSettings' });

/** Describes the present provider of single sign-on. Rules: AUDIT-5, AUTH-48. */
export async function describeOidcSettings({
  db,
  config,
  oidc,
}: Pick<Services, 'db' | 'config' | 'oidc'>): Promise<z.output<typeof oidcSettingsResponse>> {
  const makers = toMakers(await selectSettingMakers(db.read, 'oidc'));
  const hasStored = makers.updatedBy !== null;
  const settings = (await oidc.client())?.settings;
  const source = config.oidc ? ('configuration' as const) : ('stored' as const);
  const stored = hasStored && !settings ? unreadable : null;
  return {
    configured: settings !== undefined,
    source: settings ? source : null,
    issuer: settings?.issuer ?? null,
    clientId: settings?.clientId ?? null,
    hasClientSecret: settings !== undefined,
    allowedDomains: [...(settings?.allowedDomains ?? [])],
    groupIds: [...(settings?.groupIds ?? [])],
    emailTrust: settings?.emailTrust ?? null,
    redirectUri: oidcRedirectUri(config),
    note: config.oidc && hasStored ? overridden : stored,
    ...makers,
  };
}
