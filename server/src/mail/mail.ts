import type { Secret } from '../base/secret.ts';

/** Security of the connection to a mail server. */
export const mailSecurities = ['tls', 'starttls', 'opportunistic', 'none'] as const;

/**
 * Security of the connection to a mail server: `tls` from the first byte, `starttls` or no connection, `opportunistic`
 * where the server offers STARTTLS, `none` never. Certificates are always checked.
 */
export type MailSecurity = (typeof mailSecurities)[number];

/** Sender of mail. */
export interface MailSender {
  /** `null`: none is shown. */
  readonly name: string | null;
  readonly address: string;
}

/** A mail server, and how to get in. */
export interface MailServer {
  readonly host: string;
  readonly port: number;
  readonly security: MailSecurity;
  /** `null`: without signing in. */
  readonly login: { readonly username: string; readonly password: Secret } | null;
  /**
   * Present for settings of an administrator, which may lead to public addresses and these only; absent where the
   * operator chose the server.
   */
  readonly outboundNetworks?: readonly string[];
}

/** Server and sender of mail. */
export interface MailSettings extends MailServer {
  readonly from: MailSender;
}

/** Content of a mail. Links and codes in it are secrets: it is sent, and neither stored nor logged. */
export interface MailContent {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

/** A mail to one user. */
export interface Mail extends MailContent {
  /** A stored address, exactly: no other address may receive it. */
  readonly to: string;
}
