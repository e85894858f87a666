import type { MailSettings } from '../../mail/mail.ts';
import type { OidcSettings } from '../../oidc/oidc.ts';

/**
 * Returns the fields of mail settings that audit records compare; `null`: there are none, or they cannot be read. Rule:
 * AUDIT-9.
 */
export function auditedMailSettings(settings: MailSettings | null) {
  if (!settings) return null;
  const { host, port, security, login, from } = settings;
  return { host, port, security, username: login?.username ?? null, password: login?.password ?? null, from };
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
