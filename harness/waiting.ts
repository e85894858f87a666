import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until something is true; throws after `msMax` milliseconds. */
export async function until(what: string, isTrue: () => boolean | Promise<boolean>, msMax = 15_000): Promise<void> {
  const endMs = performance.now() + msMax;
  while (!(await isTrue())) {
    if (performance.now() > endMs) throw new Error(`it took too long until ${what}`);
    await sleep(5);
  }
}
