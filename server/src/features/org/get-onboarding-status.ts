import { z } from 'zod';
import { endpoint } from '../../http/endpoint.ts';
import { onboardingStatus } from './org.ts';
import { selectOrganization } from './org-store.ts';

/** Rule: ORG-28. */
export const getOnboardingStatus = endpoint({
  method: 'GET',
  path: '/org/onboarding-status',
  tag: 'Organization',
  summary: 'How far the set-up of the organization is',
  policy: { who: 'member', scope: 'org:read' },
  response: { 200: z.object({ status: onboardingStatus }) },
  async handle({ db }, { caller: { orgId } }) {
    const organization = await selectOrganization(db.read, orgId);
    return { status: organization.onboarding_status };
  },
});
