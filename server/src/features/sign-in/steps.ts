import { z } from 'zod';
import { hour } from '../../base/clock.ts';

/** Time limit of a sign-in. Rule: AUTH-3. */
export const signInMs = hour;

/** Methods of proving an identity. Rule: AUTH-5. */
const signInMethods = ['password', 'otp', 'oidc'] as const;

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

const stepsMax = 3;

/** Sign-in steps as an administrator gives them; they come out in their order. Rules: AUTH-45, AUTH-46. */
export const givenSteps = z
  .array(
    z.strictObject({
      order: z.int().min(1).max(stepsMax),
      allowedMethods: z
        .array(z.strictObject({ type: z.enum(signInMethods) }))
        .min(1)
        .max(signInMethods.length),
    }),
  )
  .min(1)
  .max(stepsMax)
  .refine(
    (given) =>
      given.every(({ order }) => order <= given.length) &&
      new Set(given.map(({ order }) => order)).size === given.length,
    {
      error: 'must be numbered by order, from 1 on',
    },
  )
  .refine(
    (given) => {
      const all = given.flatMap(methodsOf);
      return new Set(all).size === all.length;
    },
    { error: 'must not name a method twice' },
  )
  .transform((given) => given.toSorted((one, other) => one.order - other.order))
  .meta({
    examples: [[{ order: 1, allowedMethods: [{ type: 'password' }] }]],
  });
