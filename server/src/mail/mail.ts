import type { Secret } from '../base/secret.ts';

/** Security of the connection to a mail server. */
export const mailSecurities = ['tls', 'starttls', 'opportunistic', 'none'] as const;

/**
 * Security of the connection to a mail server: `tls` from the first byte, `starttls` or no connection, `opportunistic`
 * where the server offers STARTTLS, `none` never. Certificates are checked, except with `opportunistic` where nothing
 * secret is sent to sign in. Rules: FIT-24, MAIL-8.
 */
export type MailSecurity = (typeof mailSecurities)[number];

/** Sender of mail. */
export interface MailSender {
  /** `null`: none is shown. */
  readonly name: string | null;
  readonly address: string;
}

/** Access to a mail server by OAuth 2.0 (XOAUTH2): access tokens for a refresh token. Rule: FIT-25. */
export interface MailOauth2 {
  /** The mailbox that is signed in to. */
  readonly user: string;
  readonly clientId: string;
  readonly clientSecret: Secret;
  readonly refreshToken: Secret;
  /** Where access tokens are issued. */
  readonly tokenUrl: string;
}

/** A mail server, and how to get in. */
export interface MailServer {
  readonly host: string;
  readonly port: number;
  readonly security: MailSecurity;
  /** `null`: without a password. */
  readonly login: { readonly username: string; readonly password: Secret } | null;
  /** Absent: without OAuth 2.0. Never together with `login`. */
  readonly oauth2?: MailOauth2;
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
