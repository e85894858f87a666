import { setTimeout } from 'node:timers/promises';

/** Refused because of what others did at the same time: nothing was kept, and it may be done again. */
const repeatable = new Set(['40001', '40P01']);

function isConflict(error: unknown): boolean {
  return error instanceof Error && 'code' in error && repeatable.has(String(error.code));
}

/**
 * Does again what PostgreSQL refused because of what others did at the same time (serialization failures, deadlocks), a
 * little later each time.
 * @param triesMax how often in all; then what the last one threw is thrown
 */
export async function despiteOthers<T>(triesMax: number, work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isConflict(error) || tries >= triesMax) throw error;
      await setTimeout(tries * 10);
    }
  }
}
