import { Secret } from '../secret.ts';
import { canonicalJson } from './chain.ts';

/** What an act changed, field by field; `null` stands for nothing. A secret shows only that it is one. */
export type Changes = Readonly<Record<string, { readonly before: unknown; readonly after: unknown }>>;

type Values = Readonly<Record<string, unknown>>;

function isSame(one: unknown, other: unknown): boolean {
  if (one instanceof Secret && other instanceof Secret) return one.expose() === other.expose();
  return canonicalJson(one) === canonicalJson(other);
}

/**
 * Tells what is different after an act, by the names that either side has. Secrets are compared and come out as
 * `[secret]`. Rule: AUDIT-9.
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
