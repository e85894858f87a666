import { domainToUnicode } from 'node:url';
import { sql } from 'kysely';
import { foldCase } from '../../text/plain-text.ts';
import type { Reader } from '../database.ts';
import { contains } from '../search.ts';

/** Text that users are searched for by name and address. */
export interface UserSearch {
  /** Folded: see `foldCase`. */
  readonly text: string;
  /** Parts of stored addresses whose Unicode form contains the text. */
  readonly idnParts: readonly string[];
}

const partsMax = 20;
/** Of other texts no part is in the Unicode form of a domain alone: `ß` is folded to `ss`. */
const beyondAscii = /\P{ASCII}|ss/u;

/** The domains beyond ASCII of an organization's users, in the form in which they are stored. */
async function selectIdnDomains(read: Reader, orgId: string): Promise<string[]> {
  const at = sql<number>`instr(${sql.ref('email')}, '@')`;
  const rows = await read
    .selectFrom('users')
    .where('org_id', '=', orgId)
    .where(contains('email', 'xn--'))
    .select(sql<string>`substr(${sql.ref('email')}, ${at} + 1)`.as('domain'))
    .distinct()
    .execute();
  return rows.map(({ domain }) => domain);
}

/**
 * Returns what stands in the store for a text in the Unicode form of an address.
 * @param domains in their IDNA form
 */
export function idnPartsOf(text: string, domains: readonly string[]): string[] {
  const at = text.lastIndexOf('@');
  const wanted = text.slice(at + 1);
  const isMeant = (domain: string) => {
    const shown = foldCase(domainToUnicode(domain));
    return at < 0 ? shown.includes(wanted) : shown.startsWith(wanted);
  };
  return domains.filter(isMeant).map((domain) => `${text.slice(0, Math.max(at, 0))}@${domain}`);
}

/** Returns a folded text as users are searched for it; `undefined` for none. Rules: USER-16, FIT-80. */
export async function userSearch(
  read: Reader,
  orgId: string,
  text: string | undefined,
): Promise<UserSearch | undefined> {
  if (!text) return undefined;
  const domains = beyondAscii.test(text) ? await selectIdnDomains(read, orgId) : [];
  return { text, idnParts: idnPartsOf(text, domains).slice(0, partsMax) };
}

/** Conditions of which a user who is found meets at least one. */
export function userMatches(users: 'users' | 'u', { text, idnParts }: UserSearch) {
  const email = `${users}.email`;
  return [contains(`${users}.name_key`, text), contains(email, text), ...idnParts.map((part) => contains(email, part))];
}
