/**
 * Share of the random tries that one run makes: a tenth, or all with LATCHKEY_TEST_EFFORT=10, as `npm run test:all` has
 * it.
 */
const effort = Math.min(10, Number(process.env['LATCHKEY_TEST_EFFORT'] ?? '1'));

/** Whether everything is tried, as `npm run test:all` does. */
export const isWhole = effort >= 10;

/**
 * Returns the number of tries that this run makes; at least `min`. Each run begins at another place, so that in time
 * all are made.
 */
export function tries(all: number, min = 3): number {
  return Math.max(Math.min(all, min), Math.ceil((all * effort) / 10));
}

/**
 * Some of a list of places at which something is tried (before each statement, say): a third in one run, from another
 * place on each time, with the first and the last; all of them with LATCHKEY_TEST_EFFORT=10.
 */
export function someOf<T>(all: readonly T[]): readonly T[] {
  if (isWhole) return all;
  const from = Math.floor(Math.random() * 3);
  return all.filter((_, place) => place === 0 || place === all.length - 1 || place % 3 === from);
}
