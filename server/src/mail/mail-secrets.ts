import type { Mail, MailServer } from './mail.ts';
import { oneLine } from './mail-layout.ts';

const messageCharsMax = 300;
const secretChars = 20;

/** What is secret about access to a server. */
export type MailAccess = Pick<MailServer, 'login' | 'oauth2'>;

const base64 = (text: string) => Buffer.from(text).toString('base64');

/**
 * Everything secret that a server or token endpoint may quote, as it is and as it is sent.
 * @param accessToken the one in use; `null`: none
 */
function secretForms({ login, oauth2 }: MailAccess, accessToken: string | null): readonly string[] {
  const password = login?.password.expose() ?? '';
  const secrets = [password, oauth2?.clientSecret.expose(), oauth2?.refreshToken.expose(), accessToken ?? ''];
  const combined = [
    ...(login ? [`\0${login.username}\0${password}`] : []),
    ...(oauth2 && accessToken !== null ? [`user=${oauth2.user}\u0001auth=Bearer ${accessToken}\u0001\u0001`] : []),
  ];
  const known = secrets.filter((secret): secret is string => secret !== undefined && secret !== '');
  return [...combined.map(base64), ...known.flatMap((secret) => [base64(secret), encodeURIComponent(secret), secret])];
}

/** A text that another system may have put our secrets into, without them. */
function withoutSecrets(raw: string, access: MailAccess, accessToken: string | null = null): string {
  return secretForms(access, accessToken).reduce((text, form) => text.replaceAll(form, '[secret]'), raw);
}

/** Returns another system's message on one line of at most 300 characters, without our secrets. Rule: MAIL-2. */
export function messageWithoutSecrets(raw: string, access: MailAccess, accessToken: string | null): string {
  const line = withoutSecrets(raw, access, accessToken).slice(0, 10 * messageCharsMax);
  return [...oneLine(line).trim()].slice(0, messageCharsMax).join('');
}

/**
 * Returns a server's message, safe for the log and for administrators. Servers quote what they reject, so everything
 * that could be a code or a token of the mail is removed, and so is what signs in. Rule: MAIL-2.
 */
export function serverMessageOf(
  raw: string,
  mail: Mail,
  { access, accessToken }: { readonly access: MailAccess; readonly accessToken: string | null },
): string {
  const content = mail.text + mail.html;
  const line = withoutSecrets(raw, access, accessToken)
    .slice(0, 10 * messageCharsMax)
    .replace(/[\w-]{6,}/g, (run) => {
      const mayBeSecret = run.length >= secretChars || /\d/.test(run);
      return mayBeSecret && content.includes(run) ? '[…]' : run;
    });
  return [...oneLine(line).trim()].slice(0, messageCharsMax).join('');
}
