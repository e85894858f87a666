import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { ApiError } from '../../base/errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id, messageResponse } from '../../http/schemas.ts';
import { openTimes } from './public.ts';
import { endSession } from './session-store.ts';

/** Rule: AUTH-54. */
export const deleteSession = endpoint({
  method: 'DELETE',
  path: '/userAccount/sessions/:id',
  operationId: 'revokeMySession',
  tag: 'Sign-in',
  summary: 'End one of the caller’s own sessions, this one or another',
  policy: { who: 'member', sessionOnly: true },
  boundedBy: 'ends what there is',
  costs: 'nothing',
  params: z.object({ id }),
  response: { 200: messageResponse },
  async handle(services, { caller, write, params: { id: sessionId }, origin }) {
    const { userId, orgId } = caller;
    await write(async (tx) => {
      const open = openTimes(services);
      const isEnded = await endSession(tx, { userId, sessionId, open }, { nowMs: open.nowMs, reason: 'logout' });
      if (!isEnded) throw new ApiError('notFound');
      const record = { action: 'session.ended', orgId, actor: caller, subjectId: sessionId, ownerId: userId } as const;
      await appendAudit(tx, services, { ...record, origin });
    });
    return { message: 'Session ended' };
  },
});
