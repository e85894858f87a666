import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { endpoint } from '../../http/endpoint.ts';
import { idResponse, ids } from '../../http/schemas.ts';
import { emailResponse } from '../../text/email-address.ts';
import { selectUserRecords } from './user-store.ts';

/** Ids looked up in one turn of the event loop. */
const atOnce = 500;

/** Rules: USER-20, USER-21. */
export const listUsersByIds = endpoint({
  method: 'POST',
  path: '/users/by-ids',
  tag: 'Users',
  summary: 'Get the active users among some ids, in the order of the ids',
  policy: { who: 'member', scope: 'user:read' },
  costs: 'read',
  body: z.object({
    userIds: ids.describe('Unknown and deleted ones are left out'),
  }),
  response: {
    200: z.array(z.object({ _id: idResponse, fullName: z.string(), email: emailResponse, orgId: idResponse })),
  },
  async handle({ db }, { caller, reauthorize, body: { userIds } }) {
    // A body may take its time; a caller who lost the right meanwhile must not read others' data.
    await reauthorize();
    const wanted = [...new Set(userIds)];
    const byId = new Map<string, Awaited<ReturnType<typeof selectUserRecords>>[number]>();
    for (let start = 0; start < wanted.length; start += atOnce) {
      const users = await selectUserRecords(db.read, caller.orgId, wanted.slice(start, start + atOnce));
      for (const user of users) byId.set(user._id, user);
      await setImmediate();
    }
    return wanted.flatMap((userId) => byId.get(userId) ?? []);
  },
});
