import { z } from 'zod';
import type { SessionPrincipal } from '../../access/principal.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import type { Tx } from '../../db/database.ts';
import { endpoint } from '../../http/endpoint.ts';
import { messageResponse } from '../../http/schemas.ts';
import { endEverySignIn } from './session-end-actions.ts';
import { endSession } from './session-store.ts';

/** Ends the session of the caller, or all of them and whatever sign-in is not finished; answers the ids. */
async function end(
  tx: Tx,
  { caller, all, nowMs }: { readonly caller: SessionPrincipal; readonly all: boolean; readonly nowMs: number },
): Promise<readonly string[]> {
  const { userId, sessionId } = caller;
  const reason = 'logout';
  if (all) return endEverySignIn(tx, { userId, nowMs, reason });
  return (await endSession(tx, { userId, sessionId }, { nowMs, reason })) ? [sessionId] : [];
}

/** Rules: AUTH-18, SESSION-14. */
export const logOut = endpoint({
  method: 'POST',
  path: '/userAccount/logout/manual',
  tag: 'Sign-in',
  summary: 'End this session, or all of the caller’s with `all`',
  policy: { who: 'member', sessionOnly: true, writesBy: 'signingOut' },
  boundedBy: 'ends what there is',
  costs: 'nothing',
  body: z
    .object({
      all: z
        .boolean()
        .optional()
        .describe("Whether to end all of the caller's sessions rather than this one")
        .meta({ examples: [false] }),
    })
    .optional(),
  response: { 200: messageResponse },
  async handle(services, { caller, body, origin }) {
    const { userId, orgId } = caller;
    await services.db.transaction(async (tx) => {
      const ended = await end(tx, { caller, all: body?.all ?? false, nowMs: services.clock.now() });
      const record = { action: 'session.ended', orgId, actor: caller, ownerId: userId, origin } as const;
      await appendAudit(tx, services, ...ended.map((subjectId) => ({ ...record, subjectId })));
    });
    return { message: 'Logged out' };
  },
});
