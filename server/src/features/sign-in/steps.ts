import { z } from 'zod';
import { hour } from '../../base/clock.ts';

/** Time limit of a sign-in. Rule: AUTH-3. */
export const signInMs = hour;

/** Methods of proving an identity. Rule: AUTH-5. */
export const signInMethods = ['password', 'otp', 'oidc'] as const;

/** A way to prove who one is. */
export type SignInMethod = (typeof signInMethods)[number];

/** Sign-in steps: in one step after the other, one of a step's methods has to succeed. Rule: AUTH-45. */
export const signInSteps = z.array(
  z.object({ order: z.int(), allowedMethods: z.array(z.object({ type: z.enum(signInMethods) })) }),
);

/** One step of signing in. */
export type SignInStep = z.output<typeof signInSteps>[number];

/** The names of a step's methods; none for a step that isn't there. */
export function methodsOf(step: SignInStep | undefined): SignInMethod[] {
  return step?.allowedMethods.map(({ type }) => type) ?? [];
}

/** Returns whether some passed methods include one of each step. Rule: SESSION-6. */
export function coversSteps(steps: readonly SignInStep[], passed: readonly string[]): boolean {
  return steps.every((step) => methodsOf(step).some((method) => passed.includes(method)));
}

/** Sign-in steps until an administrator changes them. */
export const defaultSteps: readonly SignInStep[] = [{ order: 1, allowedMethods: [{ type: 'password' }] }];

/** Sign-in steps of an organization, and the time of their last change. */
export interface SignInConfig {
  readonly steps: readonly SignInStep[];
  /** Milliseconds since 1970; it differs whenever the steps do. */
  readonly updatedAt: number;
}
