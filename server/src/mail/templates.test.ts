import { describe, expect, it } from 'vitest';
import { approveEmailMail, emailChangedMail, emailGivenBackMail, firstSignOnMail } from './address-notices.ts';
import type { MailContent } from './mail.ts';
import {
  passwordChangedMail,
  sessionsEndedMail,
  signInStepsChangedMail,
  tokenCreatedMail,
  unlinkedMail,
} from './notice-emails.ts';
import { withoutLinks } from './people-names.ts';
import {
  administratorLeftMail,
  confirmEmailMail,
  invitationMail,
  oneTimeCodeMail,
  passwordResetMail,
  suspiciousSignInMail,
  testMail,
  welcomeMail,
} from './templates.ts';

const plain = {
  organization: 'Example',
  fullName: 'Grace Hopper',
  frontend: 'https://id.example.com',
  newEmail: 'grace.hopper@example.com',
  network: '192.0.2.7' as string | null,
};
const secret = 'Zp3vK9_u4Qb1-xW7mT2sR8yL5cN0dF6hJ3gA1eB4oUI';
const code = '480913';
const at = Date.UTC(2026, 10, 27, 20, 17, 5);

/** Every mail there is, with the link that it leads to, where it leads anywhere. */
function mailsOf(given: Partial<typeof plain> = {}): Record<string, { mail: MailContent; link: string | null }> {
  const { organization, fullName, frontend, newEmail, network } = { ...plain, ...given };
  const user = { organization, fullName };
  const happened = { at, network: network ?? '192.0.2.7' };
  const link = `${frontend}/reset-password#token=${secret}`;
  const signIn = `${frontend}/sign-in`;
  const reauthorize = `${frontend}/confirm-email#token=${secret}`;
  const others = { hasPassword: true, sessions: 2, tokenNames: [fullName, 'ci'], tokens: 5, areEnded: false };
  const toSet = { organization, link, expiresIn: '48 hours' };
  const left = { organization, users: [fullName, newEmail], by: fullName };
  const toSignIn = { organization, link: signIn, expiresIn: null };
  return {
    welcome: { mail: welcomeMail({ ...user, signInUrl: signIn }), link: signIn },
    invitation: { mail: invitationMail({ ...toSet, isReturning: false }), link },
    'invitation-back': { mail: invitationMail({ ...toSet, isReturning: true }), link },
    'invitation-sign-in': { mail: invitationMail({ ...toSignIn, isReturning: false }), link: signIn },
    'invitation-back-sign-in': { mail: invitationMail({ ...toSignIn, isReturning: true }), link: signIn },
    'password-reset': { mail: passwordResetMail({ ...user, link, expiresIn: '20 minutes' }), link },
    'one-time-code': { mail: oneTimeCodeMail({ ...user, code, expiresIn: '10 minutes' }), link: null },
    'e-mail-changed': { mail: emailChangedMail({ organization, newEmail, isVerified: true }), link: null },
    'e-mail-changed-unverified': { mail: emailChangedMail({ organization, newEmail, isVerified: false }), link: null },
    'e-mail-given-back': { mail: emailGivenBackMail({ organization, lostEmail: newEmail }), link: null },
    'e-mail-approve': {
      mail: approveEmailMail({ organization, newEmail, link: reauthorize, expiresIn: '48 hours' }),
      link: reauthorize,
    },
    'e-mail-confirm': {
      mail: confirmEmailMail({
        organization,
        account: 'g…@example.com',
        link: reauthorize,
        expiresIn: '48 hours',
        needsPassword: false,
      }),
      link: reauthorize,
    },
    'e-mail-confirm-password': {
      mail: confirmEmailMail({
        organization,
        account: 'g…@example.com',
        link: reauthorize,
        expiresIn: '48 hours',
        needsPassword: true,
      }),
      link: reauthorize,
    },
    'first-sign-on': { mail: firstSignOnMail({ organization, ...others }), link: null },
    'first-sign-on-ended': { mail: firstSignOnMail({ organization, ...others, areEnded: true }), link: null },
    'suspicious-sign-in': { mail: suspiciousSignInMail({ ...user, at, network }), link: null },
    'administrator-demoted': {
      mail: administratorLeftMail({
        ...left,
        kind: 'demoted',
        serviceClients: [fullName, 'two'],
        webhooks: ['hook.example.com'],
        settings: ['single sign-on', 'mail'],
      }),
      link: null,
    },
    'administrator-deleted': {
      mail: administratorLeftMail({ ...left, kind: 'deleted', serviceClients: [], webhooks: [], settings: [] }),
      link: null,
    },
    'password-changed': { mail: passwordChangedMail(user, { ...happened, revokedTokens: false }), link: null },
    'password-changed-tokens': { mail: passwordChangedMail(user, { ...happened, revokedTokens: true }), link: null },
    'token-created': {
      mail: tokenCreatedMail(user, { ...happened, name: 'Nightly report', never: true, adminScopes: ['org:admin'] }),
      link: null,
    },
    'sign-in-steps-changed': {
      mail: signInStepsChangedMail(user, { ...happened, steps: [['password'], ['otp', 'oidc']] }),
      link: null,
    },
    unlinked: { mail: unlinkedMail(user, { at, ended: 2 }), link: null },
    'sessions-ended': { mail: sessionsEndedMail(user, { at, ended: 2 }), link: null },
    test: { mail: testMail({ organization }), link: null },
  };
}

const names = Object.keys(mailsOf());
const mailOf = (name: string, given?: Partial<typeof plain>) => {
  const found = mailsOf(given)[name];
  if (!found) throw new Error(`no mail ${name}`);
  return found;
};

/** Returns the visible text of the HTML. */
function shown(html: string): string {
  return html
    .replace(/<[^>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');
}

function tagsOf(html: string): string[] {
  return [...html.matchAll(/<\/?[a-z!][^>]*>/gi)].map(([tag]) => tag);
}

const line = 'x'.repeat(120);
const hostile = [
  '<script>alert(1)</script>',
  '</title><img src=x onerror=alert(1)>',
  '"><a href="https://evil.example">here</a>',
  "' style='display:none",
  '&lt;b&gt; &amp; &#60;i&#62;',
  '{{constructor.constructor("x")()}} {{{x}}} {% x %} <%= x %> #{x}',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a template of another language is what is tried
  '${x} $& $1 $` $$',
  '%s %d %j %n',
  'عربي Ltd',
  '社団法人 🏛️',
];

describe('mails', () => {
  it.each(names)('%s reads as it did', async (name) => {
    const { subject, text, html } = mailOf(name).mail;
    await expect(`Subject: ${subject}\n\n${text}`, 'stale: npm run gen writes it').toMatchFileSnapshot(
      `snapshots/${name}.txt`,
    );
    await expect(html, 'stale: npm run gen writes it').toMatchFileSnapshot(`snapshots/${name}.html`);
  });

  it('the subject of an invitation names the organization, and whether one was there before (INVITE-10)', () => {
    expect(mailOf('invitation').mail.subject).toBe('You are invited to join Example');
    expect(mailOf('invitation-sign-in').mail.subject).toBe('You are invited to join Example');
    expect(mailOf('invitation-back').mail.subject).toBe('You are invited to re-join Example');
    expect(mailOf('invitation-back-sign-in').mail.subject).toBe('You are invited to re-join Example');
  });

  it.each(['invitation', 'invitation-back', 'password-reset', 'one-time-code', 'e-mail-confirm'])(
    '%s says that it works once, and for how long',
    (name) => {
      const { text, html } = mailOf(name).mail;
      const term = /works once, within (48 hours|20 minutes|10 minutes)/;
      expect(text.replaceAll('\n', ' ')).toMatch(term);
      expect(shown(html)).toMatch(term);
    },
  );

  it('a link to sign in is not said to end', () => {
    for (const name of ['invitation-sign-in', 'invitation-back-sign-in']) {
      expect(mailOf(name).mail.text).not.toMatch(/once|within/);
    }
  });

  it('a one-time code stands on a line of its own, and never in the subject', () => {
    const { subject, text, html } = mailOf('one-time-code').mail;
    expect(subject).not.toContain(code);
    expect(html.match(/<title>(.*)<\/title>/)?.[1]).not.toContain(code);
    expect(text.split('\n').filter((each) => each.trim() === code)).toHaveLength(1);
    expect(html).toContain(`>${code}</p>`);
  });

  it('a suspicious sign-in is told with its moment, and its network where that is known', () => {
    const known = mailOf('suspicious-sign-in').mail;
    expect(known.text.replaceAll('\n', ' ')).toContain('On 27 November 2026 at 20:17 UTC, ');
    expect(known.text.replaceAll('\n', ' ')).toContain('from 192.0.2.7.');
    expect(mailOf('suspicious-sign-in', { network: null }).mail.text).not.toContain('from');
  });
});

describe('texts of people in mails (M1)', () => {
  /** The mail to a user with a name like this: a greeting leaves one out that holds anything like a link (MAIL-14). */
  const usualOf = (name: string, fullName: string) =>
    mailOf(name, withoutLinks(fullName) === fullName.trim() ? {} : { fullName: 'Ada evil.example' }).mail;

  it.each(hostile)('%j is what is read, and nothing else (MAIL-4)', (text) => {
    const given = { organization: text, fullName: text };
    for (const name of names) {
      const { mail } = mailOf(name, given);
      const usual = usualOf(name, text);
      expect(mail.subject).toContain(text);
      expect(mail.text).toContain(text);
      expect(shown(mail.html)).toContain(text);
      expect(tagsOf(mail.html)).toEqual(tagsOf(usual.html));
      expect(mail.text.replaceAll(text, 'Example')).not.toContain('undefined');
    }
  });

  it.each([
    '\r\nBcc: evil@evil.example',
    '\n\n<b>',
    '\u2028x',
    '\u2029x',
    '\u0085x',
    '\0x',
    '\tx',
    '\u202ex',
    '\u2066x',
  ])('%j begins no line and turns nothing (MAIL-4)', (ending) => {
    const given = { organization: `Example${ending}`, fullName: `Grace${ending}`, newEmail: `a@x.io${ending}` };
    for (const name of names) {
      const { mail } = mailOf(name, given);
      const rest = ending.replace(/^[^<A-Za-z]+/, ' ').trimEnd();
      expect(mail.subject).toContain(`Example${rest}`);
      expect(mail.subject + mail.text + mail.html).not.toMatch(/[^\P{C}\n]|[\u0085\u2028\u2029]/u);
      expect(mail.text.split('\n').some((each) => /^(Bcc:|<b>|x\b)/.test(each))).toBe(false);
      expect(tagsOf(mail.html)).toEqual(tagsOf(usualOf(name, ending).html));
    }
  });

  it('a name that would become a link is in no mail as it was chosen (MAIL-14)', () => {
    const fullName = 'Boss, your salary letter: https://evil.example/login';
    for (const name of names.filter((each) => !each.startsWith('e-mail-confirm'))) {
      const { text, html } = mailOf(name, { fullName }).mail;
      expect([name, text]).toEqual([name, expect.not.stringContaining('evil.example')]);
      expect([name, html]).toEqual([name, expect.not.stringContaining('evil.example')]);
    }
  });

  it('half a character becomes the sign for what cannot be shown', () => {
    const { subject, text, html } = mailOf('welcome', { organization: 'Ex\ud800ample', fullName: '\udc00' }).mail;
    for (const version of [subject, text, html]) expect(version.isWellFormed()).toBe(true);
    expect(subject).toBe('Welcome to Ex\ufffdample');
  });
});

describe('links and what a mail fetches', () => {
  it.each(names)('%s names no address but its link, and fetches nothing (MAIL-13)', (name) => {
    const { mail, link } = mailOf(name);
    for (const version of [mail.text, mail.html]) {
      const rest = link === null ? version : version.replaceAll(link, '');
      expect(rest).not.toMatch(/https?:|\/\/[a-z]|www\.|url\(|@import/i);
    }
    expect(mail.html).not.toMatch(
      /\s(?:src|srcset|background|on[a-z]+)=|<(?:img|link|script|style|iframe|object|form)/i,
    );
    expect(mail.subject).not.toContain('http');
  });

  it.each([
    'https://id.example.com',
    `https://id.example.com/${'very-long-folder/'.repeat(30)}console`,
    'https://id.example.com/a&b=c;d\'e"f<g>',
    'http://localhost:3000',
  ])('the link of %j is whole: on a line of its own, as a button and written out (MAIL-13)', (frontend) => {
    for (const name of names) {
      const { mail, link } = mailOf(name, { frontend });
      if (link === null) continue;
      expect(mail.text.split('\n').filter((each) => each === link)).toHaveLength(1);
      const hrefs = [...mail.html.matchAll(/href="([^"]*)"/g)].map(([, href]) => shown(href ?? ''));
      expect(hrefs).toEqual([link, link]);
      expect(shown(mail.html).split('\n')).toContain(link);
      expect(mail.subject).not.toContain(link);
    }
  });

  it.each(names)('%s has lines of at most 76 characters but for links and long names', (name) => {
    const { mail, link } = mailOf(name, { frontend: `https://${line}.example.com` });
    const tooLong = mail.text.split('\n').filter((each) => each.length > 76);
    expect(tooLong).toEqual(link === null ? [] : [link]);
    expect(mail.text).not.toMatch(/[ \t]$/m);
    expect(mailOf(name, { organization: line }).mail.text).toContain(line);
  });

  it.each(names)('%s can be read aloud: language, title, one heading, paragraphs', (name) => {
    const { html, subject } = mailOf(name).mail;
    expect(html).toMatch(/^<!doctype html>\n<html lang="en"/);
    expect(html).toContain(`<title>${subject}</title>`);
    expect(html.match(/<h1/g)).toHaveLength(1);
    expect(html).not.toMatch(/<table|<div|<font|<center/);
  });
});
