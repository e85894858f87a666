import type { NodemailerError } from 'nodemailer';
import { connectionText } from '../base/connection-error.ts';
import { ForbiddenAddressError, hiddenReason, InsideError } from '../outbound/address-guard.ts';
import { TokenError } from './access-tokens.ts';
import type { Mail, MailSettings } from './mail.ts';
import type { MailClient } from './mail-client.ts';
import { MailError, type MailFault } from './mail-error.ts';
import { mailHint } from './mail-hints.ts';
import { serverMessageOf } from './mail-secrets.ts';

/** Replies that concern the server or the connection, not the mail: closing down, requires TLS, requires a login. */
const serverWide = new Set([421, 454, 530, 534, 535, 538]);

function toFailure(error: unknown): NodemailerError {
  return error instanceof Error ? error : new Error(String(error));
}

/** Returns whether the error is a response of a mail server. */
function isServerMessage({ responseCode }: NodemailerError): boolean {
  return Number(responseCode) >= 200;
}

/** Codes of failures after which the same attempt can succeed later, as long as nothing of the mail was sent. */
const passingCodes = new Set(['ECONNECTION', 'ESOCKET', 'EDNS', 'ETIMEDOUT', 'EABORT']);

/** Returns whether the server refused for the time being. Rule: FIT-22. */
function isDeferral({ responseCode }: NodemailerError): boolean {
  return Number(responseCode) >= 400 && Number(responseCode) < 500;
}

/** Returns whether the server cannot have taken the mail, and may take it later. Rule: FIT-23. */
function isRepeatable(failure: NodemailerError, isBegun: boolean): boolean {
  if (isDeferral(failure)) return true;
  if (failure instanceof TokenError) return failure.isRepeatable;
  return !isBegun && !isServerMessage(failure) && passingCodes.has(failure.code ?? '');
}

function faultOf({ code, responseCode }: NodemailerError): MailFault {
  if (code === 'ETIMEDOUT') return 'late';
  const isOfMail = code === 'EENVELOPE' || code === 'EMESSAGE';
  return isOfMail && !serverWide.has(responseCode ?? 0) ? 'refused' : 'unreachable';
}

/** Circumstances of a failure. */
interface Attempt {
  readonly mail: Mail;
  readonly settings: MailSettings;
  readonly client: MailClient;
  /** The one in use; `null`: none. */
  readonly accessToken: string | null;
  /** The time was over. */
  readonly isLate: boolean;
  /** Some of the mail was read, and may have been sent. */
  readonly isBegun: boolean;
  /** The server is at an address that is not public, and that an administrator chose. */
  readonly isInside: boolean;
}

/** Returns what became of an attempt at a mail that failed, without secrets. Rules: FIT-22, FIT-23, FIT-26, MAIL-2. */
export function mailErrorOf(error: unknown, attempt: Attempt): MailError {
  if (error instanceof MailError) return error;
  const failure = toFailure(error);
  if (failure instanceof ForbiddenAddressError) return new MailError('unreachable', failure.message);
  const { mail, settings, client, accessToken, isLate } = attempt;
  const safe = (text: string) => serverMessageOf(text, mail, { access: settings, accessToken });
  const details = { isDeferred: isDeferral(failure), isRepeatable: isRepeatable(failure, attempt.isBegun) };
  const kind = isLate ? 'late' : faultOf(failure);
  // A mail server's own reply is passed on; any other error must not distinguish an open port from a closed one.
  if (attempt.isInside && !isServerMessage(failure) && !(failure instanceof TokenError)) {
    const hidden = safe(hiddenReason(failure) ?? connectionText(failure));
    const reason = [hidden, mailHint(hidden, { settings, client })].filter((part) => part !== null).join(' ');
    return new MailError(kind, new InsideError().message, { ...details, reason });
  }
  if (isLate) return new MailError(kind, 'The mail server did not take the mail in time.', details);
  const message = safe(connectionText(failure));
  const reason = failure instanceof TokenError ? { reason: safe(failure.reason) } : {};
  return new MailError(kind, message, { ...details, ...reason, hint: mailHint(message, { settings, client }) });
}
