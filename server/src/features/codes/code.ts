import { randomInt } from 'node:crypto';
import { minute } from '../../base/clock.ts';
import { Secret } from '../../base/secret.ts';

const digits = 6;
/** How long a code is good for. Rule: AUTH-42. */
export const codeMs = 10 * minute;
/** Wrong tries after which a code is dead. Rule: AUTH-42. */
const triesMax = 5;

/** The form of a code as people type it. */
export const codeForm = /^\d{6}$/;

/** A new code of six random digits. Rule: AUTH-42. */
export function mintRawCode(): Secret {
  return new Secret(String(randomInt(10 ** digits)).padStart(digits, '0'));
}

/** What the store has of a person's codes. */
export interface StoredCode {
  readonly userId: string;
  /** `null`: the last one was used. */
  readonly mac: string | null;
  readonly expiresAt: number;
  readonly tries: number;
}

/** Wrong codes of an account in a day after which its codes are off for as long. Rule: AUTH-71. */
const wrongCodesMax = 30;
const wrongCodesMs = 24 * 60 * minute;

/** The wrong codes of an account in a window, which begins with the first of them. Times are in milliseconds since 1970. */
export interface WrongCodes {
  readonly count: number;
  readonly endsAt: number;
}

function isPresent({ endsAt }: WrongCodes, nowMs: number): boolean {
  // A clock that was set back must not keep codes off for longer than a day.
  return nowMs < endsAt && endsAt - nowMs <= wrongCodesMs;
}

/** Returns whether an account gets no codes, and none is right, because so many were wrong. Rule: AUTH-71. */
export function areOff(wrong: WrongCodes | undefined, nowMs: number): boolean {
  return wrong !== undefined && wrong.count >= wrongCodesMax && isPresent(wrong, nowMs);
}

/** One more wrong code; the last that is let through begins 24 hours without codes. */
export function withWrongCode(wrong: WrongCodes | undefined, nowMs: number): WrongCodes {
  const known = wrong && isPresent(wrong, nowMs) ? wrong : { count: 0, endsAt: nowMs + wrongCodesMs };
  const count = known.count + 1;
  return { count, endsAt: count >= wrongCodesMax ? nowMs + wrongCodesMs : known.endsAt };
}

/** Whether a code may still be tried. */
export function isOpen(code: StoredCode, nowMs: number): boolean {
  return code.mac !== null && nowMs < code.expiresAt && code.tries < triesMax;
}
