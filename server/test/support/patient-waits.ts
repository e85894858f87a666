import { vi } from 'vitest';

/**
 * Default wait of tests. Vitest's default of one second is not enough where the other store's tests run at the same
 * time on a small machine.
 */
const patience = { timeout: 10_000, interval: 15 };

const { waitUntil, waitFor } = vi;
const patient = <O>(options: number | O | undefined) => {
  return typeof options === 'number' ? { ...patience, timeout: options } : { ...patience, ...options };
};
const marks = globalThis as { areWaitsPatient?: boolean };
// Once for all test files that run in this process.
if (!marks.areWaitsPatient) {
  vi.waitUntil = (callback, options) => waitUntil(callback, patient(options));
  vi.waitFor = (callback, options) => waitFor(callback, patient(options));
  marks.areWaitsPatient = true;
}
