import { vi } from 'vitest';

/**
 * How long a test waits for what will happen, where it says nothing else. One second, as it is by itself, is not enough
 * where the other store's tests run beside on a small machine.
 */
const patience = { timeout: 10_000 };

const { waitUntil, waitFor } = vi;
const patient = <O>(options: number | O | undefined) => {
  return typeof options === 'number' ? { timeout: options } : { ...patience, ...options };
};
vi.waitUntil = (callback, options) => waitUntil(callback, patient(options));
vi.waitFor = (callback, options) => waitFor(callback, patient(options));
