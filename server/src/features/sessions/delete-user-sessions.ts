import { z } from 'zod';
import type { ForCaller } from '../../access/reauthorization.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { ApiError } from '../../base/errors.ts';
import type { Origin } from '../../base/origin.ts';
import { batchRows } from '../../db/batches.ts';
import type { Tx } from '../../db/database.ts';
import { selectMailTarget } from '../../db/members/mail-targets.ts';
import { selectUserById } from '../../db/members/users.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id, messageResponse } from '../../http/schemas.ts';
import { sessionsEndedMail } from '../../mail/notice-emails.ts';
import { sendNotice } from '../../mail/notices.ts';
import type { Services } from '../../services.ts';
import { openTimes } from './public.ts';
import { endEverySignIn } from './session-end-actions.ts';
import { endSession, type OpenTimes } from './session-store.ts';

const ofUser = id.describe('Of the user');

interface Ending extends ForCaller {
  readonly userId: string;
  /** `null`: all of the user's sessions. */
  readonly sessionId: string | null;
  readonly origin: Origin;
}

const reason = 'administrator';

/** Ends one session of a user, or all of them and whatever sign-in is not finished; answers the ids. */
async function endThem(
  tx: Tx,
  { userId, sessionId, open }: Pick<Ending, 'userId' | 'sessionId'> & { readonly open: OpenTimes },
): Promise<readonly string[]> {
  const { nowMs } = open;
  if (sessionId === null) return endEverySignIn(tx, { userId, nowMs, reason, open });
  return (await endSession(tx, { userId, sessionId, open }, { nowMs, reason })) ? [sessionId] : [];
}

/**
 * Ends sessions of a user for an administrator, and notifies the user; returns their number. Throws `notFound`. Rule:
 * SESSION-8.
 */
async function end(services: Services, { caller, write, userId, sessionId, origin }: Ending): Promise<number> {
  const { orgId } = caller;
  const open = openTimes(services);
  const ended = await write(async (tx) => {
    const user = await selectUserById(tx, userId);
    if (user?.orgId !== orgId) throw new ApiError('notFound');
    const ids = await endThem(tx, { userId, sessionId, open });
    if (sessionId !== null && ids.length === 0) throw new ApiError('notFound');
    const record = { action: 'session.ended', orgId, actor: caller, ownerId: userId, origin } as const;
    for (let start = 0; start < ids.length; start += batchRows) {
      const some = ids.slice(start, start + batchRows);
      await appendAudit(tx, services, ...some.map((subjectId) => ({ ...record, subjectId, details: { reason } })));
    }
    return ids.length;
  });
  if (ended > 0) {
    sendNotice(services, 'sessions ended', {
      to: (read) => selectMailTarget(read, userId),
      email: (reader) => sessionsEndedMail(reader, { at: open.nowMs, ended }),
    });
  }
  return ended;
}

/** Rule: SESSION-8. */
export const deleteUserSessions = endpoint({
  method: 'DELETE',
  path: '/users/:id/sessions',
  tag: 'Users',
  summary:
    'End all sessions of a user, and sign-ins, codes and links that are not used yet; personal access tokens go on',
  policy: { who: 'admin', scope: 'org:admin' },
  tool: { name: 'revoke_user_sessions', title: 'End all sessions of a user' },
  params: z.object({ id: ofUser }),
  response: { 200: z.object({ ended: z.int().describe('How many sessions this ended') }) },
  async handle(services, { caller, write, params: { id: userId }, origin }) {
    return { ended: await end(services, { caller, write, userId, sessionId: null, origin }) };
  },
});

/** Rule: SESSION-8. */
export const deleteUserSession = endpoint({
  method: 'DELETE',
  path: '/users/:id/sessions/:sessionId',
  tag: 'Users',
  summary: 'End one session of a user',
  policy: { who: 'admin', scope: 'org:admin' },
  tool: { name: 'revoke_user_session', title: 'End one session of a user' },
  params: z.object({ id: ofUser, sessionId: id.describe('Of the session') }),
  response: { 200: messageResponse },
  async handle(services, { caller, write, params: { id: userId, sessionId }, origin }) {
    await end(services, { caller, write, userId, sessionId, origin });
    return { message: 'Session ended' };
  },
});
