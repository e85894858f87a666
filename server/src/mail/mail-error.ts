/**
 * The reason why a mail was not sent. `unreachable`: the server as a whole (refused, TLS, login, dropped before or
 * instead of a response, mailer closed); `refused`: the server rejected this mail; `late`: 10 seconds were not enough,
 * or the caller's time was over; `address`: the library would deliver to another address than the stored one, and
 * nothing was sent.
 */
export type MailFault = 'unreachable' | 'refused' | 'late' | 'address';

/** Further knowledge about a failure. */
interface FailureDetails {
  /** Reason for the log, where administrators get another message. Of the same form. */
  readonly reason?: string;
  /** The server refused for the time being (4yz): the same mail may be taken shortly. Rule: FIT-22. */
  readonly isDeferred?: boolean;
  /** The server cannot have taken the mail, and may take it later. Rule: FIT-23. */
  readonly isRepeatable?: boolean;
  /** What an administrator can do about it, in a sentence; `null`: unknown. Rule: FIT-26. */
  readonly hint?: string | null;
}

/** A mail that did not go out, or may not have: a server can take a mail and be gone before it says so. */
export class MailError extends Error {
  override readonly name = 'MailError';
  readonly kind: MailFault;
  /**
   * Message of the server, or of the failure: one line of at most 300 characters, without the password and without the
   * secrets of the mail. For administrators only.
   */
  readonly serverMessage: string;
  readonly reason: string;
  readonly isDeferred: boolean;
  readonly isRepeatable: boolean;
  readonly hint: string | null;

  constructor(kind: MailFault, serverMessage: string, details: FailureDetails = {}) {
    super(`${kind}: ${serverMessage}`);
    this.kind = kind;
    this.serverMessage = serverMessage;
    this.reason = details.reason ?? serverMessage;
    this.isDeferred = details.isDeferred ?? false;
    this.isRepeatable = details.isRepeatable ?? this.isDeferred;
    this.hint = details.hint ?? null;
  }
}
