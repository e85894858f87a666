/**
 * Why a mail did not go out. `unreachable`: the server as a whole (refused, TLS, sign-in, dropped before or instead of an
 * answer, mailer closed); `refused`: it said no to this mail; `late`: 10 seconds were not enough, or the caller's time was
 * over; `address`: what the library would deliver to is not the stored address, and nothing was sent.
 */
export type MailFault = 'unreachable' | 'refused' | 'late' | 'address';

/** A mail that did not go out, or may not have: a server can take a mail and be gone before it says so. */
export class MailError extends Error {
  override readonly name = 'MailError';
  readonly kind: MailFault;
  /**
   * What the server said or what failed: one line of at most 300 characters, without the password and without what is
   * secret in the mail. For administrators only.
   */
  readonly said: string;
  /** What failed, where administrators are not told: for the log. Of the same form. */
  readonly reason: string;

  constructor(kind: MailFault, said: string, reason: string = said) {
    super(`${kind}: ${said}`);
    this.kind = kind;
    this.said = said;
    this.reason = reason;
  }
}
