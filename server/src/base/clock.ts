/** The one source of wall-clock time. Everything that decides by time takes a clock, so that a test can move it. Rule: HTTP-29. */
export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number;
}

/** The clock of this process. */
export const systemClock: Clock = { now: () => Date.now() };

/** Milliseconds in one second, minute, hour and day: so that a duration says its unit where it is written. */
export const second = 1_000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;

/** ISO 8601 in UTC with milliseconds, for example `2026-11-27T20:17:00.123Z`. */
export function toTimestamp(ms: number): string {
  return new Date(ms).toISOString();
}
