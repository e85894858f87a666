import type { Secret } from '../base/secret.ts';

/** How the connection to a mail server is protected. */
export const mailSecurities = ['tls', 'starttls', 'opportunistic', 'none'] as const;

/**
 * How the connection to a mail server is protected: `tls` from the first byte, `starttls` or not at all, `opportunistic`
 * where the server offers STARTTLS, `none` never. Certificates are always checked.
 */
export type MailSecurity = (typeof mailSecurities)[number];

/** Who mail comes from. */
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
  /** What an administrator stored leads to public addresses and these only; without it the operator chose the server. */
  readonly outboundNetworks?: readonly string[];
}

/** Where mail goes out, and in whose name. */
export interface MailSettings extends MailServer {
  readonly from: MailSender;
}

/** What a mail says. Links and codes in it are secrets: it is sent, and neither kept nor logged. */
export interface MailContent {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

/** A mail to one person. */
export interface Mail extends MailContent {
  /** A stored address: nobody else may get it. */
  readonly to: string;
}
