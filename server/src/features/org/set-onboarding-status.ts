import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { endpoint } from '../../http/endpoint.ts';
import { onboardingStatus } from './org.ts';
import { selectOrganization, updateOrganization } from './org-store.ts';

/** Rule: ORG-29. */
export const setOnboardingStatus = endpoint({
  method: 'PUT',
  path: '/org/onboarding-status',
  tag: 'Organization',
  summary: 'Set the progress of setting up the organization',
  policy: { who: 'admin', scope: 'org:write' },
  body: z.object({ status: onboardingStatus.meta({ examples: ['configured'] }) }),
  response: { 200: z.object({ message: z.string(), status: onboardingStatus }) },
  async handle(services, { caller, write, body: { status }, origin }) {
    const { orgId } = caller;
    await write(async (tx) => {
      const organization = await selectOrganization(tx, orgId);
      const updated_at = services.clock.now();
      await updateOrganization(tx, { ...organization, onboarding_status: status, updated_at });
      const changes = changesBetween(
        { onBoardingStatus: organization.onboarding_status },
        { onBoardingStatus: status },
      );
      const record = { action: 'org.onboarding-set', orgId, actor: caller, subjectId: orgId, origin, changes } as const;
      await appendAudit(tx, services, record);
    });
    return { message: 'Onboarding status updated successfully', status };
  },
});
