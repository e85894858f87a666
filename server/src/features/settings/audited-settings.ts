import type { MailSettings } from '../../mail/mail.ts';
import type { OidcSettings } from '../../oidc/oidc.ts';

/**
 * Returns the fields of mail settings that audit records compare; `null`: there are none, or they cannot be read. Rule:
 * AUDIT-9.
 */
export function auditedMailSettings(settings: MailSettings | null) {
  if (!settings) return null;
  const { host, port, security, login, from, oauth2 } = settings;
  const access = { username: login?.username ?? null, password: login?.password ?? null };
  // Side by side, since each secret is compared.
  const byOauth2 = oauth2 && {
    oauth2User: oauth2.user,
    oauth2ClientId: oauth2.clientId,
    oauth2ClientSecret: oauth2.clientSecret,
    oauth2RefreshToken: oauth2.refreshToken,
    oauth2TokenUrl: oauth2.tokenUrl,
  };
  return { host, port, security, ...access, from, ...byOauth2 };
}

/**
 * Returns the fields of single sign-on settings that audit records compare; `null`: there are none, or they cannot be
 * read. Rule: AUDIT-9.
 */
export function auditedOidcSettings(settings: OidcSettings | null) {
  if (!settings) return null;
  const { changedAtMs: _, ...compared } = settings;
  return compared;
}
