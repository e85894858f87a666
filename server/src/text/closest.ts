/** Returns the letters in one case, without separators. */
function bare(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
}

/**
 * Returns the number of letters that have to be added, removed, replaced or exchanged with their neighbour to turn one
 * text into another (optimal string alignment).
 */
function distance(one: string, other: string): number {
  let [before, last] = [[] as number[], Array.from({ length: other.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= one.length; row += 1) {
    const next = [row];
    for (let column = 1; column <= other.length; column += 1) {
      const isSame = one[row - 1] === other[column - 1];
      const isExchanged = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      next[column] = Math.min(
        (last[column] ?? 0) + 1,
        (next[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
        isExchanged ? (before[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [before, last] = [last, next];
  }
  return last[other.length] ?? 0;
}

/** Letters per allowed error. */
const lettersPerFault = 3;
/** The shortest beginning of a name that stands for it. */
const beginningMin = 3;

/**
 * Returns the known name that was probably meant by an unknown one: one that differs in a few letters (at most one in
 * three), another spelling (`expiry_days`), or one with the same beginning (`expiry`). `null`: none is close.
 */
export function closestName(unknown: string, known: readonly string[]): string | null {
  const given = bare(unknown);
  let best: { readonly name: string; readonly faults: number } | null = null;
  for (const name of known) {
    const meant = bare(name);
    const allowed = Math.floor(Math.min(given.length, meant.length) / lettersPerFault);
    // A much longer text is not compared, however long it is.
    if (Math.abs(given.length - meant.length) <= allowed) {
      const faults = distance(given, meant);
      if (faults <= allowed && faults < (best?.faults ?? Number.POSITIVE_INFINITY)) best = { name, faults };
    }
  }
  return best?.name ?? known.find((name) => given.length >= beginningMin && bare(name).startsWith(given)) ?? null;
}
