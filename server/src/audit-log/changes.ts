import { canonicalJson } from '../base/canonical-json.ts';
import { Secret } from '../base/secret.ts';

/** Changes of an act, field by field; `null` stands for nothing. For a secret they show only that there is one. */
export type Changes = Readonly<Record<string, { readonly before: unknown; readonly after: unknown }>>;

type Values = Readonly<Record<string, unknown>>;

function isSame(one: unknown, other: unknown): boolean {
  if (one instanceof Secret && other instanceof Secret) return one.expose() === other.expose();
  return canonicalJson(one) === canonicalJson(other);
}

/**
 * Returns the changes of an act, by the names that either side has. Secrets are compared and shown as `[secret]`. Rule:
 * AUDIT-9.
 * @param before `null`: there was nothing
 * @param after `null`: there is nothing any more
 */
export function changesBetween(before: Values | null, after: Values | null): Changes {
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  const pairs = [...names].map((name) => [name, before?.[name] ?? null, after?.[name] ?? null] as const);
  return Object.fromEntries(
    pairs
      .filter(([, one, other]) => !isSame(one, other))
      .map(([name, one, other]) => [name, { before: one, after: other }]),
  );
}

/** Bytes of the changes, and of the details, of one record as JSON. */
const recordBytesMax = 4_096;
const textMax = 200;
const membersMax = 40;

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

function shortText(text: string): string {
  return text.length > textMax ? `${text.slice(0, textMax).toWellFormed()}… (${text.length} characters)` : text;
}

/** Returns a value with a maximum number of items in each list, and the number of the rest. */
function shortened(value: Json, itemsMax: number): Json {
  if (typeof value === 'string') return shortText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const some: readonly Json[] = value.slice(0, itemsMax).map((item: Json) => shortened(item, itemsMax));
    return value.length > itemsMax ? [...some, { more: value.length - itemsMax }] : some;
  }
  const members = Object.entries(value);
  const some = members.slice(0, membersMax).map(([name, of]) => [shortText(name), shortened(of, itemsMax)] as const);
  return Object.fromEntries(members.length > membersMax ? [...some, ['more', members.length - membersMax]] : some);
}

function isObject(value: Json): value is { readonly [name: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Of two lists, what only one of them has: what both have is a number. */
function withoutCommon(value: Json): Json {
  if (!isObject(value)) return value;
  const { before, after } = value;
  if (!Array.isArray(before) || !Array.isArray(after)) return value;
  const [earlier, later] = [before, after].map((items) => new Set(items.map(canonicalJson)));
  const removed = before.filter((item) => !later?.has(canonicalJson(item)));
  const added = after.filter((item) => !earlier?.has(canonicalJson(item)));
  return { before: removed, after: added, unchanged: before.length - removed.length };
}

/**
 * Changes or details as they are stored: canonical JSON of at most 4 KB. Where they are longer, lists lose what did not
 * change, then all but their first items, and long texts their ends; a number stands for the rest. Rule: AUDIT-16.
 */
export function boundedJson(values: Readonly<Record<string, unknown>>): string {
  const whole = canonicalJson(values);
  if (Buffer.byteLength(whole) <= recordBytesMax) return whole;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what was written just now
  const given = JSON.parse(whole) as Readonly<Record<string, Json>>;
  const changed = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, withoutCommon(value)]));
  for (const itemsMax of [50, 20, 5, 0]) {
    const text = canonicalJson(shortened(changed, itemsMax));
    if (Buffer.byteLength(text) <= recordBytesMax) return text;
  }
  return canonicalJson({ more: Object.keys(given).length });
}
