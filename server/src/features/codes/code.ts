import { randomInt } from 'node:crypto';
import { minute } from '../../clock.ts';
import { Secret } from '../../secret.ts';

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

/** Whether a code may still be tried. */
export function isOpen(code: StoredCode, nowMs: number): boolean {
  return code.mac !== null && nowMs < code.expiresAt && code.tries < triesMax;
}
