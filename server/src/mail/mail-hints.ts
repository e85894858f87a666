import type { MailSettings } from './mail.ts';
import type { MailClient } from './mail-client.ts';

/** Subject of a hint. */
interface HintParts {
  readonly settings: Pick<MailSettings, 'host' | 'port' | 'security' | 'login' | 'oauth2' | 'from'>;
  readonly client: MailClient;
}

interface Rule {
  readonly matches: RegExp;
  readonly hint: (parts: HintParts) => string;
}

const userOf = ({ settings }: HintParts) => settings.oauth2?.user ?? settings.login?.username ?? 'no user';
const senderHint = (parts: HintParts) =>
  `The user ${userOf(parts)} may not send as ${parts.settings.from.address}: set MAIL_FROM (from) to an address of the user, or allow it at the provider.`;
const tokenHint =
  'The refresh token, the client or its permission for SMTP is no longer valid: authorize the mailbox again, and set refreshToken (SMTP_OAUTH2_REFRESH_TOKEN).';

/** The causes that servers have words for; the first that matches counts. From Microsoft, Google, Amazon and Postfix. */
const rules: readonly Rule[] = [
  { matches: /AADSTS|invalid_grant|invalid_client|unauthorized_client/, hint: () => tokenHint },
  {
    matches: /5\.7\.139|SmtpClientAuthentication is disabled/i,
    hint: ({ settings }) =>
      `SMTP AUTH is switched off at the provider: switch it on for this mailbox or the whole tenant (${settings.host}).`,
  },
  {
    matches:
      /5\.7\.60|5\.2\.252|SendAs ?Denied|not (?:allowed|authori[sz]ed|permitted) to send (?:as|from|mail from)|not owned by user/i,
    hint: senderHint,
  },
  { matches: /(?:address|identit\w+) (?:is|are|has) not (?:been )?verified/i, hint: senderHint },
  {
    matches: /application-specific password|5\.7\.9\b/i,
    hint: () => 'The account needs an app password, or OAuth 2.0 (oauth2), in place of its own password.',
  },
  {
    matches: /concurrent connections?|too many (?:concurrent )?connections|connection limit/i,
    hint: ({ client }) =>
      `The server takes fewer connections than ${client.connections} at once, those of other programs included: lower MAIL_CONNECTIONS.`,
  },
  {
    matches: /5\.7\.57|not authenticated|authentication required|authenticate first|auth(?:entication)? is required/i,
    hint: ({ settings }) =>
      settings.login || settings.oauth2
        ? 'The server offered no sign-in on this connection: use security starttls or tls, and the port for submission (587 or 465).'
        : 'The server wants a sign-in: set a user name and password, or oauth2.',
  },
  {
    matches: /upgrading connection with STARTTLS|EHLO failed but HELO/i,
    hint: ({ settings }) =>
      `The server does not offer STARTTLS at port ${settings.port}: use security tls and port 465, or the port for submission (587).`,
  },
  {
    matches: /STARTTLS|encryption required|530 5\.7\.0/i,
    hint: ({ settings }) =>
      `The server wants an encrypted connection: use security starttls or tls (now ${settings.security}).`,
  },
  {
    matches: /\b535\b|5\.7\.8\b|5\.7\.3\b|Invalid login/i,
    hint: (parts) =>
      parts.settings.oauth2
        ? `The server refuses the access token of ${userOf(parts)}: check the user, and that the token allows SMTP (Microsoft: SMTP.Send; Google: https://mail.google.com/).`
        : `The server refuses the user name ${userOf(parts)} or its password.`,
  },
  {
    matches: /\b(?:EHLO|HELO)\b|helo command|hostname rejected|need fully-qualified/i,
    hint: ({ client }) =>
      `The server refuses the name ${client.name}, which is the host of BASE_URL: set BASE_URL to the public address.`,
  },
  {
    matches: /relay(?:ing)? (?:access )?(?:denied|not permitted|not allowed)|unable to relay|5\.7\.64/i,
    hint: ({ settings }) =>
      settings.login || settings.oauth2
        ? 'The server does not forward mail for this user.'
        : 'The server does not forward mail without a sign-in: set one, or allow the address of this service at the server.',
  },
  {
    matches: /\b552\b|5\.3\.4\b|5\.2\.3\b|larger than allowed|size limit|too (?:big|large)/i,
    hint: () => 'The server takes only smaller mails, although these are small: raise its size limit.',
  },
  {
    matches: /self.signed|unable to (?:verify|get)|certificate|altname/i,
    hint: () =>
      'The certificate of the server is not one that this machine trusts for this name: use the name in the certificate, or start the service with NODE_EXTRA_CA_CERTS.',
  },
  {
    matches: /does not speak TLS on this port|record layer/i,
    hint: ({ settings }) =>
      `The server does not speak TLS from the first byte at port ${settings.port}: use security starttls, or port 465.`,
  },
  {
    matches: /Greeting never received/i,
    hint: ({ settings }) =>
      settings.security === 'tls'
        ? ''
        : `The server says nothing at port ${settings.port}: if it speaks TLS from the first byte there, use security tls.`,
  },
  {
    matches: /\b(?:421|45\d|4\d\d)[ -]/,
    hint: () => 'The server refuses for the time being: try again in some minutes.',
  },
];

/**
 * Returns what an administrator can do about the message of a mail server or token endpoint, in a sentence; `null` for a
 * message that is not known. Rule: FIT-26.
 */
export function mailHint(message: string, parts: HintParts): string | null {
  const rule = rules.find(({ matches }) => matches.test(message));
  return rule?.hint(parts) || null;
}
