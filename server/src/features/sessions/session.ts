import { z } from 'zod';
import { day, hour, second } from '../../base/clock.ts';
import { components, idResponse } from '../../http/schemas.ts';
import { emailResponse } from '../../text/email-address.ts';

/** The user of a session, as the exchange of a refresh token returns them. */
export const sessionUser = z.object({
  _id: idResponse,
  userId: idResponse,
  orgId: idResponse,
  email: emailResponse,
  fullName: z.string(),
});

/**
 * Time in which an exchanged refresh token returns the same pair again, for clients whose response was lost. Rule:
 * SESSION-5.
 */
export const rotationGraceMs = 10 * second;
/** Time for which ended session tokens are kept, so that they are distinguished from invented ones. */
export const endedKeptMs = 30 * day;

/** A refresh token as the store has it, with its session and its owner. */
export interface StoredRefreshToken {
  readonly session_id: string;
  readonly expires_at: number;
  readonly rotated_at: number | null;
  /** The pair that it was exchanged for, encrypted; `null` once that is no longer returned. */
  readonly successor: string | null;
  /** Time and methods of the sign-in that began its session. */
  readonly created_at: number;
  /** When it was last refreshed, or began. */
  readonly active_at: number | null;
  readonly methods: string | null;
  readonly ended_at: number | null;
  readonly user_id: string;
  readonly org_id: string;
  readonly is_admin: 0 | 1;
  readonly owner_deleted: 0 | 1;
  readonly org_deleted: 0 | 1;
}

/**
 * Returns the state of a refresh token; `rotated`: it may have the pair again that it was exchanged for. Rules:
 * AUTH-15, AUTH-17, AUTH-24, SESSION-4, SESSION-5.
 * @param sessionEndMs the latest end of its session
 */
export function validateRefresh(
  token: StoredRefreshToken,
  nowMs: number,
  sessionEndMs: number,
): 'good' | 'rotated' | 'reused' | 'ended' | 'ownerGone' {
  if (token.owner_deleted === 1 || token.org_deleted === 1) return 'ownerGone';
  if (token.ended_at !== null || nowMs >= Math.min(token.expires_at, sessionEndMs)) return 'ended';
  if (token.rotated_at === null) return 'good';
  return nowMs < token.rotated_at + rotationGraceMs ? 'rotated' : 'reused';
}

/** A new password also revokes the user's tokens. Rule: SESSION-2. */
export const revokeTokens = z
  .boolean()
  .optional()
  .describe('Whether to revoke all personal access tokens of the user as well, with all that they created')
  .meta({ examples: [false] });

/** Proofs of a sign-in other than passwords: codes sent by email, and tickets that the browser carries back. */
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

/** Response of the last step of signing in. Rule: AUTH-7. */
export const signedIn = z.object({ message: z.string(), accessToken: z.string(), refreshToken: z.string() });
components.add(signedIn, { id: 'SignedIn' });

/** Response of a step that another follows. Rule: AUTH-8. */
export const oneStep = z.object({
  status: z.literal('success'),
  nextStep: z.int().describe('Counted from 0'),
  allowedMethods: z.array(z.string()),
  authProviders: z.record(z.string(), z.unknown()),
});

/** Whether a refresh is recorded: of those of a session the first one, and then the first of each hour. Rule: AUDIT-21. */
export function isRefreshRecorded(
  { active_at: lastMs, created_at: sinceMs }: StoredRefreshToken,
  nowMs: number,
): boolean {
  return lastMs === null || lastMs === sinceMs || Math.floor(lastMs / hour) < Math.floor(nowMs / hour);
}
