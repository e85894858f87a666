import { type Sentence, say } from './mail-layout.ts';

/**
 * What programs that show mail make links of, although it is not meant to be one: addresses of any scheme, domains, mail
 * addresses, paths and telephone numbers.
 */
const linkLike = [
  /\p{L}[\p{L}\p{N}+.-]*:(?=\S)/gu,
  /(?<=[\p{L}\p{N}])[.\u2024\u3002\uff0e\uff61](?=[\p{L}\p{N}-]{2})/gu,
  /[/\\@\uff0f\uff20\u2044\u2215]/gu,
  /\+?\p{Nd}[\p{Nd} ().-]{4,}\p{Nd}/gu,
];

/** A name that users chose, in a mail: without what would become a link. Rule: MAIL-14. */
export function withoutLinks(name: string): string {
  return linkLike
    .reduce((text, pattern) => text.replace(pattern, ' '), name)
    .replace(/\s+/gu, ' ')
    .trim();
}

/** The greeting of a mail; without the name where that holds anything like a link. Rule: MAIL-14. */
export function hello(fullName: string): Sentence {
  const isPlain = withoutLinks(fullName) === fullName.replace(/\s+/gu, ' ').trim();
  return isPlain ? say`Hello ${fullName},` : say`Hello,`;
}

/** The same of a name that its e-mail address follows in parentheses, which stays. Rule: MAIL-14. */
export function accountWithoutLinks(account: string): string {
  const [, name, address] = /^(.*) (\([^()\s]+\))$/su.exec(account) ?? [];
  return name === undefined ? withoutLinks(account) : `${withoutLinks(name)} ${address}`;
}
