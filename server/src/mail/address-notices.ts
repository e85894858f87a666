import type { MailContent } from './mail.ts';
import { layOut, type Sentence, say } from './mail-layout.ts';
import { withoutLinks } from './people-names.ts';
import { type FromOrganization, footer } from './templates.ts';

/** Content of a notice: something happened to an account, and there is nothing to open. */
interface Notice extends FromOrganization {
  readonly subject: string;
  readonly heading: Sentence;
  readonly text: readonly Sentence[];
}

function notice({ organization, subject, heading, text }: Notice): MailContent {
  return layOut({ subject, heading, before: text, centre: null, after: [], footer: footer(organization) });
}

/** Advice for a reader who does not expect the notice. */
function unexpected(organization: string): Sentence {
  return say`If not, another person may be using your account: please tell an administrator of ${organization} at once. They can correct the address and end all sessions.`;
}

/** To the last verified address of an account, and to the new one where that is verified. Rule: MAIL-6. */
export function emailChangedMail({
  organization,
  newEmail,
  isVerified,
}: FromOrganization & { readonly newEmail: string; readonly isVerified: boolean }): MailContent {
  return notice({
    organization,
    subject: `Your e-mail address at ${organization} was changed`,
    heading: say`Your e-mail address was changed`,
    text: [
      say`The e-mail address of your account at ${organization} is now ${newEmail}.`,
      ...(isVerified
        ? []
        : [
            say`It is not verified yet. Until it is, mail to recover the account keeps going to the address of before.`,
          ]),
      say`If you or an administrator changed it, there is nothing to do.`,
      unexpected(organization),
    ],
  });
}

/** To the last verified address of an account without a password, whose user asks for another one. Rule: ADDRESS-16. */
export function approveEmailMail({
  organization,
  newEmail,
  link,
  expiresIn,
}: FromOrganization & Record<'newEmail' | 'link' | 'expiresIn', string>): MailContent {
  return layOut({
    subject: `Allow another e-mail address at ${organization}?`,
    heading: say`Another e-mail address for your account`,
    before: [
      say`Your account at ${organization} is to have the e-mail address ${newEmail}. Mail to recover the account goes there only once you allow it here, and the new address is confirmed.`,
    ],
    centre: { label: 'Allow the change', link },
    after: [
      say`The link works once, within ${expiresIn}. It is meant for you alone: please do not pass it on.`,
      say`If you did not change the address, do not allow it: another person may be using your account. Please tell an administrator of ${organization} at once.`,
    ],
    footer: footer(organization),
  });
}

/** Mail to a user whose unverified address was proved by another person. Rule: ADDRESS-7. */
export function emailGivenBackMail({
  organization,
  lostEmail,
}: FromOrganization & { readonly lostEmail: string }): MailContent {
  return notice({
    organization,
    subject: `Your e-mail address at ${organization} was changed back`,
    heading: say`Your e-mail address was changed back`,
    text: [
      say`Your account at ${organization} had the e-mail address ${lostEmail}, which was not verified. It now belongs to the account of another person, who proved it or was given it by an administrator.`,
      say`Your account has this address again, the last one that was verified. From now on, sign in with this one.`,
      say`If you set the other address yourself, there is nothing to do.`,
      unexpected(organization),
    ],
  });
}

/** Credentials of a user other than single sign-on. */
interface FirstSignOn extends FromOrganization {
  readonly hasPassword: boolean;
  readonly sessions: number;
  /** The names of the first tokens. */
  readonly tokenNames: readonly string[];
  /** Total number of tokens. */
  readonly tokens: number;
  /** Whether all of it was ended, because the user of the account had chosen the address. */
  readonly areEnded: boolean;
}

/** To a user whose account was linked to single sign-on, and had other credentials before. Rule: ADDRESS-10. */
export function firstSignOnMail(email: FirstSignOn): MailContent {
  const { organization, hasPassword, sessions, tokenNames, tokens, areEnded } = email;
  const more = tokens - tokenNames.length;
  const named = tokenNames.map((name) => `“${withoutLinks(name)}”`).join(', ') + (more > 0 ? ` and ${more} more` : '');
  return notice({
    organization,
    subject: `Single sign-on now opens your account at ${organization}`,
    heading: say`Single sign-on now opens your account`,
    text: [
      say`Single sign-on was used for the first time with your account at ${organization}, which was found by this e-mail address.`,
      areEnded
        ? say`The account was in use before, and its user had chosen this address. These could act as you, and have ended:`
        : say`The account was in use before. Besides single sign-on, these can act as you:`,
      ...(hasPassword ? [say`- a password`] : []),
      ...(sessions > 0 ? [say`- sessions that are open: ${String(sessions)}`] : []),
      ...(tokens > 0 ? [say`- personal access tokens: ${named}`] : []),
      areEnded
        ? say`If the account was yours before, set a new password and make new tokens where you need them. If it was not, please tell an administrator of ${organization}.`
        : say`If you know all of them, there is nothing to do. End those that you do not know, and change the password if it is not yours. If you did not use single sign-on, please tell an administrator of ${organization} at once.`,
    ],
  });
}
