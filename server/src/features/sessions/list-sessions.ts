import { z } from 'zod';
import type { Principal } from '../../access/principal.ts';
import { toTimestamp } from '../../base/clock.ts';
import { ApiError } from '../../base/errors.ts';
import { selectUserById } from '../../db/members/users.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id, idResponse, listQuery, timestamp } from '../../http/schemas.ts';
import type { Services } from '../../services.ts';
import { openTimes } from './public.ts';
import { sessionEndMs } from './session-pair-actions.ts';
import { selectOpenSessions } from './session-store.ts';

const response = {
  200: z.object({
    sessions: z.array(
      z.object({
        id: idResponse,
        isCurrent: z.boolean().describe('Whether this request was made in it'),
        network: z.string().nullable().describe('The address that it began from; null: not known'),
        createdAt: timestamp.describe('When the user signed in'),
        lastActiveAt: timestamp.describe('When it began or was last refreshed'),
        expiresAt: timestamp.describe('When it ends unless it is refreshed'),
      }),
    ),
  }),
};

/** The sessions of a user that have not ended. */
async function sessionsOf(services: Services, userId: string, caller: Principal) {
  const rows = await selectOpenSessions(services.db.read, userId, openTimes(services));
  const sessions = rows.map(({ id: sessionId, network, createdAt, activeAt, expiresAt }) => ({
    id: sessionId,
    isCurrent: caller.kind === 'session' && sessionId === caller.sessionId,
    network,
    createdAt: toTimestamp(createdAt),
    lastActiveAt: toTimestamp(activeAt ?? createdAt),
    expiresAt: toTimestamp(Math.min(expiresAt, sessionEndMs(services, createdAt))),
  }));
  return { sessions };
}

/** Rule: AUTH-53. */
export const listSessions = endpoint({
  method: 'GET',
  path: '/userAccount/sessions',
  operationId: 'listMySessions',
  tag: 'Sign-in',
  summary: 'List the caller’s own sessions that have not ended, the latest active first, at most 100',
  policy: { who: 'member', sessionOnly: true },
  query: listQuery({}),
  response,
  handle: (services, { caller }) => sessionsOf(services, caller.userId, caller),
});

/** Rule: SESSION-8. */
export const listUserSessions = endpoint({
  method: 'GET',
  path: '/users/:id/sessions',
  tag: 'Users',
  summary: 'List the sessions of a user that have not ended, the latest active first, at most 100',
  policy: { who: 'admin', scope: 'org:admin' },
  tool: { name: 'list_user_sessions', title: 'List the sessions of a user' },
  params: z.object({ id: id.describe('Of the user') }),
  query: listQuery({}),
  response,
  async handle(services, { caller, params: { id: userId } }) {
    const user = await selectUserById(services.db.read, userId);
    if (user?.orgId !== caller.orgId) throw new ApiError('notFound');
    return sessionsOf(services, userId, caller);
  },
});
