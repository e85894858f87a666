import { z } from 'zod';
import { unauthorized } from '../../access/bearer.ts';
import { refuseInput } from '../../base/errors.ts';
import { isOrganizationDeleted } from '../../db/members/organization.ts';
import { endpoint } from '../../http/endpoint.ts';
import { idResponse } from '../../http/schemas.ts';
import { emailAddress, emailResponse } from '../../text/email-address.ts';
import { selectUsersByEmail } from './user-store.ts';

const email = emailAddress.optional().describe('Required, in the body or in the query; the body counts first');

/** Rules: ADDRESS-15, ORG-27, SERVICE-5. */
export const findUsersByEmail = endpoint({
  method: 'GET',
  path: '/users/email/exists',
  tag: 'Services',
  summary: 'Find the users who have a verified e-mail address, deleted users included',
  policy: { who: 'service', scope: 'USER_LOOKUP' },
  query: z.object({ email }),
  body: z.object({ email }).optional(),
  response: {
    200: z.array(z.object({ _id: idResponse, email: emailResponse, fullName: z.string(), isDeleted: z.boolean() })),
  },
  async handle({ db }, { query, body }) {
    // Since admission a body has arrived. Rule: ORG-27.
    if (await isOrganizationDeleted(db)) throw unauthorized.invalid();
    const wanted = body?.email ?? query.email;
    if (wanted === undefined) throw refuseInput({ field: 'body.email', message: 'is required' });
    const users = await selectUsersByEmail(db.read, wanted);
    return users.map(({ id, email, fullName, isDeleted }) => ({
      _id: id,
      email,
      fullName,
      isDeleted: isDeleted === 1,
    }));
  },
});
