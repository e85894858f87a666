import { setTimeout } from 'node:timers/promises';

/** Codes of conflicts with concurrent transactions: nothing was written, and the work may be repeated. */
const repeatable = new Set(['40001', '40P01']);

function isConflict(error: unknown): boolean {
  return error instanceof Error && 'code' in error && repeatable.has(String(error.code));
}

/**
 * Repeats work that PostgreSQL rejected because of concurrent transactions (serialization failures, deadlocks), with
 * growing pauses.
 * @param triesMax the number of attempts; then the last error is thrown
 */
export async function retryOnConflict<T>(triesMax: number, work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isConflict(error) || tries >= triesMax) throw error;
      await setTimeout(tries * 10);
    }
  }
}
