import { z } from 'zod';
import { selectActiveOrganization } from '../../db/members/organization.ts';
import { endpoint } from '../../http/endpoint.ts';
import { signsInBy } from '../sign-in/public.ts';

/** Rule: PASSWORD-13. */
export const checkPasswordSignIn = endpoint({
  method: 'GET',
  path: '/userAccount/internal/password/check',
  tag: 'Services',
  summary: 'Return whether users sign in with a password, in any step',
  policy: { who: 'service', scope: 'FETCH_CONFIG' },
  response: { 200: z.object({ isPasswordAuthEnabled: z.boolean() }) },
  async handle({ db }) {
    const organization = await selectActiveOrganization(db.read);
    return { isPasswordAuthEnabled: organization ? await signsInBy(db.read, organization.id, 'password') : false };
  },
});
