import { setImmediate } from 'node:timers/promises';

/** Rows that one transaction writes before other transactions get their turn. */
export const batchRows = 500;

/**
 * Repeats a removal of at most `batchRows` rows until there is nothing left; between two, others get their turn.
 * @returns how many rows were removed in all
 */
export async function removeInBatches(removeSome: () => Promise<number>): Promise<number> {
  let removed = 0;
  for (;;) {
    const count = await removeSome();
    removed += count;
    if (count < batchRows) return removed;
    await setImmediate();
  }
}
