import { z } from 'zod';

const hourMs = 3_600_000;

/** How long a session token is good for. Rule: AUTH-12. */
export const accessTokenMs = 24 * hourMs;
/** How long a refresh token is good for, if it isn't exchanged before. Rule: AUTH-15. */
export const refreshTokenMs = 30 * 24 * hourMs;
/** How long an exchanged refresh token still works, for clients whose answer was lost. Rule: AUTH-16. */
const rotationGraceMs = 10_000;
/** How long a sign-in may take from its start. Rule: AUTH-3. */
export const signInMs = hourMs;
/** How long ended session tokens are remembered, so that they are told apart from invented ones. */
export const endedKeptMs = 30 * 24 * hourMs;

/** How people sign in: in one step after the other, one of a step's methods has to succeed. */
export const signInSteps = z.array(
  z.object({ order: z.int(), allowedMethods: z.array(z.object({ type: z.enum(['password']) })) }),
);

/** One step of signing in. */
export type SignInStep = z.output<typeof signInSteps>[number];

/** How people sign in until an administrator changes it. */
export const defaultSteps: readonly SignInStep[] = [{ order: 1, allowedMethods: [{ type: 'password' }] }];

/** A refresh token as the store has it, with its session and its owner. */
export interface StoredRefreshToken {
  readonly session_id: string;
  readonly expires_at: number;
  readonly rotated_at: number | null;
  readonly ended_at: number | null;
  readonly user_id: string;
  readonly org_id: string;
  readonly owner_deleted: 0 | 1;
  readonly org_deleted: 0 | 1;
}

/** What a refresh token may still do. Rules: AUTH-15 to AUTH-17, AUTH-24. */
export function judgeRefresh(token: StoredRefreshToken, nowMs: number): 'good' | 'reused' | 'ended' | 'ownerGone' {
  if (token.owner_deleted === 1 || token.org_deleted === 1) return 'ownerGone';
  if (token.ended_at !== null || nowMs >= token.expires_at) return 'ended';
  return token.rotated_at === null || nowMs < token.rotated_at + rotationGraceMs ? 'good' : 'reused';
}
