type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json | undefined };

function withSortedKeys(_: string, value: Json): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).filter(([, of]) => of !== undefined);
  // In the order of their UTF-16 units, as RFC 8785 has it.
  return Object.fromEntries(entries.sort(([one], [other]) => (one < other ? -1 : 1)));
}

/**
 * A value as canonical JSON (RFC 8785): no white space, names sorted. Names that look like array indexes would not stay
 * in order, so there must be none.
 */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, withSortedKeys);
}
