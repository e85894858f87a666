/** How much of what is tried at random is tried in one run: a tenth, or all with LATCHKEY_TEST_EFFORT=10, as `npm run test:all` has it. */
const effort = Math.min(10, Number(process.env['LATCHKEY_TEST_EFFORT'] ?? '1'));

/** How many of so many tries this run makes; never fewer than `min`. Each run begins at another place, so that in time all are made. */
export function tries(all: number, min = 3): number {
  return Math.max(Math.min(all, min), Math.ceil((all * effort) / 10));
}
