import type { Clock } from '../../src/base/clock.ts';

/** A clock that stands still until a test moves it. */
export class TestClock implements Clock {
  #nowMs: number;

  /** @param nowMs start; a fixed time, so that nothing depends on the day of the run */
  constructor(nowMs = Date.UTC(2026, 10, 27, 20, 17, 0, 123)) {
    this.#nowMs = nowMs;
  }

  now(): number {
    return this.#nowMs;
  }

  /** Moves on, or back with a negative number. */
  advance(ms: number): void {
    this.#nowMs += ms;
  }

  set(nowMs: number): void {
    this.#nowMs = nowMs;
  }
}
