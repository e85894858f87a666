import type { MailContent } from './mail.ts';

/** A sentence or more, written for both versions of a mail: made by `say` alone, so that nothing gets in unescaped. */
export interface Sentence {
  /** Kept together where lines are broken: each word, and each value with what touches it. */
  readonly words: readonly string[];
  readonly html: string;
}

/** Link of a mail. */
interface Link {
  readonly label: string;
  /** Written out as it is in the text, on a line of its own. */
  readonly link: string;
}

/** A mail before it is laid out. */
interface Email {
  readonly subject: string;
  readonly heading: Sentence;
  readonly greeting?: Sentence;
  readonly before: readonly Sentence[];
  /** A link as a button, or a code that can be read at a glance; `null` for neither. */
  readonly centre: Link | { readonly code: string } | null;
  readonly after: readonly Sentence[];
  /** Sender and reason of the mail. */
  readonly footer: Sentence;
}

const textColumns = 76;
/** Characters that could end a line, hide, or turn the reading direction of the text after them. */
const harmful = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu;
const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Returns text on one line, for a header too: characters that cannot be in one become spaces. Rule: MAIL-4. */
export function oneLine(text: string): string {
  return text.toWellFormed().replace(harmful, ' ');
}

/** A text as HTML shows it, between tags and in quoted attributes. Rule: MAIL-4. */
function escapeHtml(text: string): string {
  return oneLine(text).replace(/[&<>"']/g, (sign) => entities[sign] ?? '');
}

/**
 * Template whose literal parts are ours and whose values are untrusted: those are sanitized, escaped in HTML, isolated
 * from the reading direction around them, and never broken over lines in the text. Rule: MAIL-4.
 */
export function say(literals: TemplateStringsArray, ...values: readonly string[]): Sentence {
  const words = [''];
  let html = '';
  literals.forEach((literal, index) => {
    const [first = '', ...rest] = literal.split(' ');
    words.push(`${words.pop() ?? ''}${first}`, ...rest);
    html += escapeHtml(literal);
    const value = values[index];
    if (value === undefined) return;
    words.push(`${words.pop() ?? ''}${oneLine(value)}`);
    html += `<bdi>${escapeHtml(value)}</bdi>`;
  });
  return { words, html };
}

function inLines({ words }: Sentence): string {
  const lines: string[] = [];
  for (const word of words) {
    const line = lines.at(-1);
    if (line === undefined || line.length + 1 + word.length > textColumns) lines.push(word);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines.join('\n');
}

function textOf({ heading, greeting, before, centre, after, footer }: Email): string {
  const middle = centre === null ? [] : ['code' in centre ? `    ${centre.code}` : `${centre.label}:\n${centre.link}`];
  const paragraphs = [
    inLines(heading),
    ...[...(greeting ? [greeting] : []), ...before].map(inLines),
    ...middle,
    ...after.map(inLines),
    `${'_'.repeat(40)}\n${inLines(footer)}`,
  ];
  return `${paragraphs.join('\n\n')}\n`;
}

// No colour but the button's: text, ground and links take those of the reader's light or dark scheme.
const styles = {
  root: 'color-scheme: light dark;',
  body: 'margin: 0; padding: 24px 16px;',
  main: "max-width: 560px; margin: 0 auto; font-family: system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif; font-size: 16px; line-height: 1.5; overflow-wrap: anywhere; word-break: break-word;",
  heading: 'margin: 0 0 16px; font-size: 24px; line-height: 1.25; font-weight: 600;',
  paragraph: 'margin: 0 0 16px;',
  linkParagraph: 'margin: 24px 0;',
  button:
    'display: inline-block; padding: 12px 24px; border: 1px solid #ffffff; border-radius: 6px; background-color: #1a56b0; color: #ffffff; font-weight: 600; text-decoration: none;',
  address: 'margin: 0 0 16px; font-size: 14px;',
  link: 'word-break: break-all;',
  code: "margin: 24px 0; font-family: ui-monospace, Menlo, Consolas, 'Courier New', monospace; font-size: 32px; line-height: 1.25; font-weight: 700; letter-spacing: 6px;",
  footer: 'margin: 32px 0 0; padding: 16px 0 0; border-top: 1px solid #808080; font-size: 14px;',
} as const;

function tag(name: 'h1' | 'p' | 'footer', style: string, content: string): string {
  return `<${name} style="${escapeHtml(style)}">${content}</${name}>`;
}

function htmlOfCentre(centre: NonNullable<Email['centre']>): string[] {
  if ('code' in centre) return [tag('p', styles.code, escapeHtml(centre.code))];
  const href = escapeHtml(centre.link);
  return [
    tag('p', styles.linkParagraph, `<a href="${href}" style="${styles.button}">${escapeHtml(centre.label)}</a>`),
    tag(
      'p',
      styles.address,
      `If the button does not work, open this address:<br>\n<a href="${href}" style="${styles.link}">${href}</a>`,
    ),
  ];
}

function htmlOf({ subject, heading, greeting, before, centre, after, footer }: Email): string {
  const paragraph = ({ html }: Sentence) => tag('p', styles.paragraph, html);
  return [
    '<!doctype html>',
    `<html lang="en" dir="ltr" style="${styles.root}">`,
    '<head>',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    '<meta name="supported-color-schemes" content="light dark">',
    '<meta name="format-detection" content="telephone=no, date=no, address=no, email=no">',
    `<title>${escapeHtml(subject)}</title>`,
    '</head>',
    `<body style="${styles.body}">`,
    `<main style="${escapeHtml(styles.main)}">`,
    tag('h1', styles.heading, heading.html),
    ...[...(greeting ? [greeting] : []), ...before].map(paragraph),
    ...(centre === null ? [] : htmlOfCentre(centre)),
    ...after.map(paragraph),
    tag('footer', styles.footer, footer.html),
    '</main>',
    '</body>',
    '</html>',
    '',
  ].join('\n');
}

/**
 * Lays out an email as a text that is complete by itself and as HTML that loads nothing: no picture, font, script or
 * tracking. Lines of the text are at most 76 characters, but a link or a name is never broken. Rule: MAIL-13.
 */
export function layOut(email: Email): MailContent {
  return { subject: oneLine(email.subject), text: textOf(email), html: htmlOf(email) };
}
