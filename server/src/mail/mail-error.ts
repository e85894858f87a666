/**
 * The reason why a mail was not sent. `unreachable`: the server as a whole (refused, TLS, login, dropped before or
 * instead of a response, mailer closed); `refused`: the server rejected this mail; `late`: 10 seconds were not enough,
 * or the caller's time was over; `address`: the library would deliver to another address than the stored one, and
 * nothing was sent.
 */
export type MailFault = 'unreachable' | 'refused' | 'late' | 'address';

/** A mail that did not go out, or may not have: a server can take a mail and be gone before it says so. */
export class MailError extends Error {
  override readonly name = 'MailError';
  readonly kind: MailFault;
  /**
   * Message of the server, or of the failure: one line of at most 300 characters, without the password and without the
   * secrets of the mail. For administrators only.
   */
  readonly serverMessage: string;
  /** Reason for the log, where administrators get another message. Of the same form. */
  readonly reason: string;

  constructor(kind: MailFault, serverMessage: string, reason: string = serverMessage) {
    super(`${kind}: ${serverMessage}`);
    this.kind = kind;
    this.serverMessage = serverMessage;
    this.reason = reason;
  }
}
