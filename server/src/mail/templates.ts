import type { MailContent } from './mail.ts';
import { layOut, type Sentence, say } from './mail-layout.ts';
import { accountWithoutLinks, hello, withoutLinks } from './people-names.ts';

/** Sender of a mail. */
export interface FromOrganization {
  /** Its short name as users wrote it. */
  readonly organization: string;
}

/** A mail to a user whose name is known. */
interface ToUser extends FromOrganization {
  readonly fullName: string;
}

/** The last line of every mail. */
export function footer(organization: string): Sentence {
  return say`This mail was sent by the sign-in service of ${organization}.`;
}

/** To the first administrator of a new organization. */
export function welcomeMail({
  organization,
  fullName,
  signInUrl,
}: ToUser & { readonly signInUrl: string }): MailContent {
  return layOut({
    subject: `Welcome to ${organization}`,
    heading: say`${organization} is ready`,
    greeting: hello(fullName),
    before: [
      say`The organization ${organization} has been set up, and you are its administrator. Sign in with this e-mail address and the password that you chose.`,
    ],
    centre: { label: 'Sign in', link: signInUrl },
    after: [say`A good next step is to invite the people you work with.`],
    footer: footer(organization),
  });
}

/** Content of an invitation. */
interface InvitationEmail extends FromOrganization {
  /** Address where the user sets a password, or the sign-in page. */
  readonly link: string;
  /** Lifetime of a link that sets a password, for example `48 hours`; `null`: it leads to the sign-in page. */
  readonly expiresIn: string | null;
  /** The user was in the organization before. */
  readonly isReturning: boolean;
}

/** Mail to a user who was invited, or invited again. Rule: INVITE-10. */
export function invitationMail({ organization, link, expiresIn, isReturning }: InvitationEmail): MailContent {
  const what = isReturning ? 're-join' : 'join';
  const first = isReturning
    ? say`Welcome back: an administrator of ${organization} has opened your account again.`
    : say`An administrator of ${organization} has created an account for you.`;
  const signsIn = expiresIn === null;
  return layOut({
    subject: `You are invited to ${what} ${organization}`,
    heading: isReturning ? say`Re-join ${organization}` : say`Join ${organization}`,
    before: [
      first,
      signsIn ? say`To begin, sign in with this e-mail address.` : say`To begin, choose a password for it.`,
    ],
    centre: { label: signsIn ? 'Sign in' : 'Choose your password', link },
    after: [
      ...(signsIn
        ? []
        : [
            say`The link works once, within ${expiresIn}. It is meant for you alone: please do not pass it on. If its time is over, ask your administrator for a new one.`,
          ]),
      say`If you did not expect this, you can ignore this mail.`,
    ],
    footer: footer(organization),
  });
}

/** Content of a mail about a forgotten password. */
interface PasswordResetEmail extends ToUser {
  readonly link: string;
  /** Lifetime of the link, for example `20 minutes`. */
  readonly expiresIn: string;
}

/** Mail to a user who forgot a password, or for whom one was requested. Rule: PASSWORD-8. */
export function passwordResetMail({ organization, fullName, link, expiresIn }: PasswordResetEmail): MailContent {
  return layOut({
    subject: `Reset your password for ${organization}`,
    heading: say`Reset your password`,
    greeting: hello(fullName),
    before: [say`Someone, hopefully you, asked for a new password for your account at ${organization}.`],
    centre: { label: 'Choose a new password', link },
    after: [
      say`The link works once, within ${expiresIn}. It is meant for you alone: please do not pass it on.`,
      say`If you did not ask for this, you need not do anything: nothing changes, and your password stays as it is.`,
    ],
    footer: footer(organization),
  });
}

/** Content of a mail with a one-time code. */
interface OneTimeCodeEmail extends ToUser {
  /** A secret: it is in the mail's body alone. */
  readonly code: string;
  /** Lifetime of the code, for example `10 minutes`. */
  readonly expiresIn: string;
}

/** Mail to a user who signs in by a code. The subject, which locked phones display, doesn't contain it. */
export function oneTimeCodeMail({ organization, fullName, code, expiresIn }: OneTimeCodeEmail): MailContent {
  return layOut({
    subject: `Your sign-in code for ${organization}`,
    heading: say`Your sign-in code`,
    greeting: hello(fullName),
    before: [say`Enter this code to sign in to ${organization}:`],
    centre: { code },
    after: [
      say`It works once, within ${expiresIn}. No one from ${organization} will ever ask you for it: please do not pass it on.`,
      say`If you are not signing in just now, you can ignore this mail. No one can sign in without the code.`,
    ],
    footer: footer(organization),
  });
}

/** Content of a mail with a link to confirm an address. */
interface ConfirmAddressEmail extends FromOrganization {
  /** The last verified address of the account, masked: its name is what its user says, who may be anyone. */
  readonly account: string;
  readonly link: string;
  /** Lifetime of the link, for example `48 hours`. */
  readonly expiresIn: string;
  /** The page asks for the current password. */
  readonly needsPassword: boolean;
}

/** To the new address of an account. Rule: ADDRESS-5. */
export function confirmEmailMail(email: ConfirmAddressEmail): MailContent {
  const { organization, account, link, expiresIn, needsPassword } = email;
  return layOut({
    subject: `Confirm your e-mail address for ${organization}`,
    heading: say`Confirm your e-mail address`,
    before: [
      say`The user of the account ${account} at ${organization} asks to use this address from now on. Confirm it only if that account is yours: mail about it comes here then.`,
      ...(needsPassword ? [say`The page will ask for the password of the account.`] : []),
    ],
    centre: { label: 'Confirm this address', link },
    after: [
      say`The link works once, within ${expiresIn}. It is meant for you alone: please do not pass it on.`,
      say`If that is not your account, or you did not enter this address, do not confirm it: otherwise another person would count as the owner of your address. You can ignore this mail.`,
    ],
    footer: footer(organization),
  });
}

/** Content of a mail about a suspicious sign-in. */
interface SuspiciousSignInEmail extends ToUser {
  /** Time when it was noticed, in milliseconds since 1970-01-01T00:00:00Z. */
  readonly at: number;
  /** From where, for example `192.0.2.7`; `null` when that isn't known. */
  readonly network: string | null;
}

const time = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' });

/** Mail to a user one of whose refresh tokens was presented a second time, so that it has probably been copied. */
export function suspiciousSignInMail({ organization, fullName, at, network }: SuspiciousSignInEmail): MailContent {
  const when = `${time.format(at)} UTC`;
  return layOut({
    subject: `A session of yours at ${organization} was ended`,
    heading: say`We ended one of your sessions`,
    greeting: hello(fullName),
    before: [
      network === null
        ? say`On ${when}, an old sign-in key of your account at ${organization} was used again.`
        : say`On ${when}, an old sign-in key of your account at ${organization} was used again, from ${network}.`,
      say`It had been replaced before, so it may have been copied. We ended that session: everyone who used it, you included, has to sign in again.`,
      say`If you do not know what this was, sign in and change your password, and tell an administrator of ${organization}.`,
    ],
    centre: null,
    after: [],
    footer: footer(organization),
  });
}

/** To an administrator who tries the mail settings out. */
export function testMail({ organization }: FromOrganization): MailContent {
  return layOut({
    subject: `Test mail from ${organization}`,
    heading: say`Mail works`,
    before: [
      say`This is the test mail that you asked for. The mail settings of ${organization} work: invitations and links to reset a password can be sent.`,
    ],
    centre: null,
    after: [],
    footer: footer(organization),
  });
}

/** Content of a notice about an administrator who left. */
interface AdministratorLeftEmail extends FromOrganization {
  readonly kind: 'demoted' | 'deleted';
  readonly users: readonly string[];
  readonly by: string;
  /** Names of what they created, or know the secrets of, and what stays active. */
  readonly serviceClients: readonly string[];
  /** Hosts. */
  readonly webhooks: readonly string[];
  /** Names of settings. */
  readonly settings: readonly string[];
}

/** To the administrators who remain. Rule: LEAVER-6. */
export function administratorLeftMail(email: AdministratorLeftEmail): MailContent {
  const { organization, kind, webhooks, settings } = email;
  const by = accountWithoutLinks(email.by);
  const users = email.users.map(accountWithoutLinks).join(', ');
  const serviceClients = email.serviceClients.map(withoutLinks);
  return layOut({
    subject: `An administrator of ${organization} was removed`,
    heading: say`An administrator was removed`,
    before: [
      kind === 'demoted'
        ? say`${by} removed the administrator role at ${organization} from: ${users}.`
        : say`${by} deleted at ${organization}: ${users}.`,
      ...(serviceClients.length > 0
        ? [say`These service clients stay active, and their secrets may be known: ${serviceClients.join(', ')}.`]
        : []),
      ...(webhooks.length > 0
        ? [say`These webhooks still get events, or their secrets may be known: ${webhooks.join(', ')}.`]
        : []),
      ...(settings.length > 0
        ? [say`These settings go on as they set them, and what is secret in them may be known: ${settings.join(', ')}.`]
        : []),
      serviceClients.length + webhooks.length + settings.length > 0
        ? say`Please review each: rotate the secret of a service client, confirm or change settings, and delete or replace what is no longer needed.`
        : say`No service client, webhook or setting of theirs needs review.`,
    ],
    centre: null,
    after: [say`If you did not expect this, look at the audit log of ${organization}.`],
    footer: footer(organization),
  });
}
