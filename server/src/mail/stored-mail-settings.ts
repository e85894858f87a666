import { z } from 'zod';
import { Secret } from '../base/secret.ts';
import { type MailSettings, mailSecurities } from './mail.ts';
import { shownSender } from './mail-address.ts';

/** Form of the stored mail settings, once decrypted. */
const storedForm = z.object({
  host: z.string(),
  port: z.int(),
  security: z.enum(mailSecurities),
  login: z.object({ username: z.string(), password: z.string() }).nullable(),
  oauth2: z
    .object({
      user: z.string(),
      clientId: z.string(),
      clientSecret: z.string(),
      refreshToken: z.string(),
      tokenUrl: z.string(),
    })
    .optional(),
  from: z.object({ name: z.string().nullable(), address: z.string() }),
});

/** Mail settings as text, secrets in clear: to be encrypted. */
export function storedMailSettings({ login, oauth2, ...settings }: MailSettings): string {
  const stored = {
    ...settings,
    login: login && { ...login, password: login.password.expose() },
    oauth2: oauth2 && {
      ...oauth2,
      clientSecret: oauth2.clientSecret.expose(),
      refreshToken: oauth2.refreshToken.expose(),
    },
  };
  return JSON.stringify(stored);
}

/** Mail settings out of the text that they were stored as. */
export function parseMailSettings(text: string): MailSettings {
  const { login, oauth2, ...settings } = storedForm.parse(JSON.parse(text));
  const access = login && { username: login.username, password: new Secret(login.password) };
  if (!oauth2) return { ...settings, login: access };
  const secrets = { clientSecret: new Secret(oauth2.clientSecret), refreshToken: new Secret(oauth2.refreshToken) };
  return { ...settings, login: access, oauth2: { ...oauth2, ...secrets } };
}

const shownOauth2 = z
  .object({
    user: z.string(),
    clientId: z.string(),
    hasClientSecret: z.boolean(),
    hasRefreshToken: z.boolean(),
    tokenUrl: z.string(),
  })
  .nullable()
  .describe('Signing in by OAuth 2.0 (XOAUTH2); null: by user name and password, or not at all');

/** Fields of mail settings as they go out: all but what is secret. Rules: AUDIT-5, FIT-25. */
export const shownMailFields = z.object({
  host: z.string().nullable(),
  port: z.int().nullable(),
  security: z.enum(mailSecurities).nullable(),
  username: z.string().nullable(),
  hasPassword: z.boolean(),
  oauth2: shownOauth2,
  from: z.string().nullable(),
});

function withoutSecrets(oauth2: MailSettings['oauth2']): z.output<typeof shownOauth2> {
  if (!oauth2) return null;
  const { user, clientId, tokenUrl } = oauth2;
  return { user, clientId, hasClientSecret: true, hasRefreshToken: true, tokenUrl };
}

/** Mail settings without what is secret; `null`: there are none. Rules: AUDIT-5, FIT-25. */
export function shownMailSettings(settings: MailSettings | null): z.output<typeof shownMailFields> {
  if (!settings) {
    const server = { host: null, port: null, security: null, from: null };
    return { ...server, username: null, hasPassword: false, oauth2: null };
  }
  const { host, port, security, login, oauth2, from } = settings;
  const access = { username: login?.username ?? null, hasPassword: login !== null, oauth2: withoutSecrets(oauth2) };
  return { host, port, security, ...access, from: shownSender(from) };
}
