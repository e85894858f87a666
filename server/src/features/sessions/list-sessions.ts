import { z } from 'zod';
import { toTimestamp } from '../../clock.ts';
import { endpoint } from '../../http/endpoint.ts';
import { idAnswer, listQuery, timestamp } from '../../http/schemas.ts';
import { selectOpenSessions } from './session-store.ts';

/** Rule: AUTH-53. */
export const listSessions = endpoint({
  method: 'GET',
  path: '/userAccount/sessions',
  tag: 'Sign-in',
  summary: 'List the caller’s own sessions that have not ended, the latest active first, at most 100',
  policy: { who: 'member', sessionOnly: true },
  query: listQuery({}),
  response: {
    200: z.object({
      sessions: z.array(
        z.object({
          id: idAnswer,
          isCurrent: z.boolean(),
          network: z.string().nullable().describe('The address that it began from; null: not known'),
          createdAt: timestamp,
          lastActiveAt: timestamp.describe('When it began or was last refreshed'),
          expiresAt: timestamp.describe('When it ends unless it is refreshed'),
        }),
      ),
    }),
  },
  async handle({ db, clock }, { caller: { userId, sessionId } }) {
    const rows = await selectOpenSessions(db.read, userId, clock.now());
    const sessions = rows.map((row) => ({
      id: row.id,
      isCurrent: row.id === sessionId,
      network: row.network,
      createdAt: toTimestamp(row.createdAt),
      lastActiveAt: toTimestamp(row.activeAt ?? row.createdAt),
      expiresAt: toTimestamp(row.expiresAt),
    }));
    return { sessions };
  },
});
