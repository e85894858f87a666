import { randomInt } from 'node:crypto';
import { minute } from '../../base/clock.ts';
import { Secret } from '../../base/secret.ts';

const digits = 6;
/** Lifetime of a code. Rule: AUTH-42. */
export const codeMs = 10 * minute;
/** Wrong tries from the network that asked for a code, and from elsewhere, after which it is wrong there. Rule: AUTH-42. */
const triesMax = 5;

/** Form of a code as users type it. */
export const codeForm = /^\d{6}$/;

/** A new code of six random digits. Rule: AUTH-42. */
export function createRawCode(): Secret {
  return new Secret(String(randomInt(10 ** digits)).padStart(digits, '0'));
}

/** Wrong codes of an account from a network in a day after which its codes are off there for as long. Rule: AUTH-71. */
const wrongCodesMax = 30;
const wrongCodesMs = 24 * 60 * minute;

/** The wrong codes of an account from a network in a window, which begins with the first. Times are in milliseconds since 1970. */
interface WrongCodes {
  readonly count: number;
  readonly endsAt: number;
}

/** What an account has of codes for a network: the last code that was asked for from there, and the wrong ones from there. */
export interface StoredCode {
  readonly userId: string;
  /** Empty for all networks together that the account did not sign in from. */
  readonly network: string;
  /** `null`: there was none, or the last one was used. */
  readonly mac: string | null;
  readonly expiresAt: number;
  /** Wrong codes since, from this network. */
  readonly tries: number;
  /** Wrong codes since, from elsewhere. */
  readonly otherTries: number;
  readonly wrong: WrongCodes;
}

/** What an account has of codes for a network before the first one. */
export function noCode(userId: string, network: string): StoredCode {
  return { userId, network, mac: null, expiresAt: 0, tries: 0, otherTries: 0, wrong: { count: 0, endsAt: 0 } };
}

function isPresent({ endsAt }: WrongCodes, nowMs: number): boolean {
  // A clock that was set back must not keep codes off for longer than a day.
  return nowMs < endsAt && endsAt - nowMs <= wrongCodesMs;
}

/** Returns whether an account gets no codes for a network, and none is right there, because so many were wrong. Rule: AUTH-71. */
export function areOff({ wrong }: StoredCode, nowMs: number): boolean {
  return wrong.count >= wrongCodesMax && isPresent(wrong, nowMs);
}

/** One more wrong code from a network; the last that is let through begins 24 hours without codes. */
export function withWrongCode(code: StoredCode, nowMs: number): StoredCode {
  const known = isPresent(code.wrong, nowMs) ? code.wrong : { count: 0, endsAt: nowMs + wrongCodesMs };
  const count = known.count + 1;
  return { ...code, wrong: { count, endsAt: count >= wrongCodesMax ? nowMs + wrongCodesMs : known.endsAt } };
}

/** Returns whether a code may still be tried from a network. Rule: AUTH-42. */
export function isOpen(code: StoredCode, network: string, nowMs: number): boolean {
  const tries = code.network === network ? code.tries : code.otherTries;
  return code.mac !== null && nowMs < code.expiresAt && tries < triesMax;
}

/** A code after a wrong try from a network. */
export function withTry(code: StoredCode, network: string): StoredCode {
  if (code.network === network) return { ...code, tries: code.tries + 1 };
  return { ...code, otherTries: code.otherTries + 1 };
}
