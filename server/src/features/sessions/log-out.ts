import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { endpoint } from '../../http/endpoint.ts';
import { messageAnswer } from '../../http/schemas.ts';
import { endSessions } from './session-store.ts';

/** Rule: AUTH-18. */
export const logOut = endpoint({
  method: 'POST',
  path: '/userAccount/logout/manual',
  tag: 'Sign-in',
  summary: 'End this session, or all of the caller’s with `all`',
  policy: { who: 'member', sessionOnly: true, writesBy: 'signingOut' },
  boundedBy: 'ends what there is',
  costs: 'nothing',
  body: z
    .strictObject({
      all: z
        .boolean()
        .optional()
        .describe("Whether to end all of the caller's sessions rather than this one")
        .meta({ examples: [false] }),
    })
    .optional(),
  response: { 200: messageAnswer },
  async handle(services, { caller, body, origin }) {
    const { userId, orgId } = caller;
    const sessionId = body?.all ? null : caller.sessionId;
    await services.db.transaction(async (tx) => {
      const end = { nowMs: services.clock.now(), reason: 'logout' } as const;
      const ended = await endSessions(tx, { userId, sessionId }, end);
      const record = { action: 'session.ended', orgId, actor: caller, ownerId: userId, origin } as const;
      await appendAudit(tx, services, ...ended.map((subjectId) => ({ ...record, subjectId })));
    });
    return { message: 'Logged out' };
  },
});
