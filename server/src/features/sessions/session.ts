import { z } from 'zod';

const hourMs = 3_600_000;

/** How long a session token is good for. Rule: AUTH-12. */
export const accessTokenMs = 24 * hourMs;
/** How long a refresh token is good for, if it isn't exchanged before. Rule: AUTH-15. */
export const refreshTokenMs = 30 * 24 * hourMs;
/** How long an exchanged refresh token still works, for clients whose answer was lost. Rule: AUTH-16. */
const rotationGraceMs = 10_000;
/** How long ended session tokens are remembered, so that they are told apart from invented ones. */
export const endedKeptMs = 30 * 24 * hourMs;

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

/** What proves who signs in, but for passwords: what came by mail, and what the browser carries back. */
export const mailedAndCarried = {
  otp: z
    .string()
    .max(20)
    .optional()
    .describe('For the method otp: the code in the mail')
    .meta({ examples: ['042137'] }),
  oidc: z
    .string()
    .max(200)
    .optional()
    .describe('For the method oidc: the ticket that one came back with')
    .meta({ examples: ['ticket-from-the-address'] }),
};

/** The answer of the last step of signing in. Rule: AUTH-7. */
export const signedIn = z.object({ message: z.string(), accessToken: z.string(), refreshToken: z.string() });

/** The answer of a step that another follows. Rule: AUTH-8. */
export const oneStep = z.object({
  status: z.literal('success'),
  nextStep: z.int().describe('Counted from 0'),
  allowedMethods: z.array(z.string()),
  authProviders: z.record(z.string(), z.unknown()),
});
