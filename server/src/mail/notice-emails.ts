import type { MailContent } from './mail.ts';
import { layOut, type Sentence, say } from './mail-layout.ts';
import { hello, withoutLinks } from './people-names.ts';

/** Reader and sender of a notice. */
export interface NoticeReader {
  /** Its short name as users wrote it. */
  readonly organization: string;
  readonly fullName: string;
}

/** Time of an event and origin of its request. */
interface Happening {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly network: string;
}

const time = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' });
const timeOf = (at: number) => `${time.format(at)} UTC`;

/** Lays out a notice: what happened, and what to do about it. */
function noticeMail(
  { organization, fullName }: NoticeReader,
  { subject, heading, what }: { readonly subject: string; readonly heading: Sentence; readonly what: Sentence[] },
): MailContent {
  return layOut({
    subject,
    heading,
    greeting: hello(fullName),
    before: what,
    centre: null,
    after: [],
    footer: say`This mail was sent by the sign-in service of ${organization}.`,
  });
}

/** To the owner of an account whose password was changed. */
export function passwordChangedMail(
  reader: NoticeReader,
  { at, network, revokedTokens }: Happening & { readonly revokedTokens: boolean },
): MailContent {
  const { organization } = reader;
  return noticeMail(reader, {
    subject: `Your password at ${organization} was changed`,
    heading: say`Your password was changed`,
    what: [
      say`The password of your account at ${organization} was changed on ${timeOf(at)}, from ${network}.`,
      revokedTokens
        ? say`All your sessions ended, and all your personal access tokens were revoked.`
        : say`All your sessions ended. Your personal access tokens still work: revoke those that you do not know.`,
      say`If you did not change it, ask for a new password on the sign-in page at once and tell an administrator of ${organization}, who can end all your sessions and revoke your tokens.`,
    ],
  });
}

/** To the owner of a new token that never expires or that has rights of an administrator. */
export function tokenCreatedMail(
  reader: NoticeReader,
  token: Happening & { readonly name: string; readonly never: boolean; readonly adminScopes: readonly string[] },
): MailContent {
  const { organization } = reader;
  const { at, network, name, never, adminScopes } = token;
  const scopes = adminScopes.join(', ');
  return noticeMail(reader, {
    subject: `A personal access token was created at ${organization}`,
    heading: say`A personal access token was created`,
    what: [
      say`The personal access token ${withoutLinks(name)} was created for your account at ${organization} on ${timeOf(at)}, from ${network}.`,
      ...(never ? [say`It never expires.`] : []),
      ...(adminScopes.length > 0
        ? [say`It has scopes of administrators, which count while you are one: ${scopes}.`]
        : []),
      say`If you did not create it, revoke it, change your password, and tell an administrator of ${organization}.`,
    ],
  });
}

/** To the administrators of an organization whose sign-in steps were changed. */
export function signInStepsChangedMail(
  reader: NoticeReader,
  { at, network, steps }: Happening & { readonly steps: readonly (readonly string[])[] },
): MailContent {
  const { organization } = reader;
  const list = steps.map((methods) => methods.join(' or ')).join(', then ');
  return noticeMail(reader, {
    subject: `The sign-in steps of ${organization} were changed`,
    heading: say`The sign-in steps were changed`,
    what: [
      say`An administrator changed how users sign in to ${organization} on ${timeOf(at)}, from ${network}. The steps are now: ${list}.`,
      say`Sessions that did not go through these steps end when they are next refreshed.`,
      say`If this was not agreed among you, set the steps again and check who is an administrator.`,
    ],
  });
}

/** To a user whose sessions an administrator ended. */
export function sessionsEndedMail(
  reader: NoticeReader,
  { at, ended }: { readonly at: number; readonly ended: number },
): MailContent {
  const { organization } = reader;
  return noticeMail(reader, {
    subject: `An administrator of ${organization} ended your sessions`,
    heading: say`An administrator ended your sessions`,
    what: [
      ended === 1
        ? say`On ${timeOf(at)} an administrator of ${organization} ended one of your sessions.`
        : say`On ${timeOf(at)} an administrator of ${organization} ended ${String(ended)} of your sessions.`,
      say`Sign in again to continue. If you do not know the reason, ask an administrator of ${organization}.`,
    ],
  });
}

/** To a user whose link to single sign-on an administrator forgot. */
export function unlinkedMail(
  reader: NoticeReader,
  { at, ended }: { readonly at: number; readonly ended: number },
): MailContent {
  const { organization } = reader;
  return noticeMail(reader, {
    subject: `Your account at ${organization} was unlinked from single sign-on`,
    heading: say`Your account was unlinked from single sign-on`,
    what: [
      say`On ${timeOf(at)} an administrator of ${organization} unlinked your account from single sign-on. Sessions that ended with it: ${String(ended)}.`,
      say`The next time you use single sign-on with the e-mail address of your account, it is linked again.`,
      say`If you do not know the reason, ask an administrator of ${organization}.`,
    ],
  });
}
