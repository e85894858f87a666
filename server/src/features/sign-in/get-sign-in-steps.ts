import { z } from 'zod';
import { endpoint } from '../../http/endpoint.ts';
import { selectSignInConfig } from './step-store.ts';
import { signInSteps } from './steps.ts';

/** Rule: AUTH-45. */
export const getSignInSteps = endpoint({
  method: 'GET',
  path: '/orgAuthConfig/authMethods',
  tag: 'Sign-in',
  summary: 'Return the sign-in steps of the organization: one after the other, each by one of its methods',
  policy: { who: 'admin', sessionOnly: true },
  response: { 200: z.object({ authMethods: signInSteps }) },
  async handle({ db }, { caller: { orgId } }) {
    const { steps } = await selectSignInConfig(db.read, orgId);
    return { authMethods: [...steps] };
  },
});
