import { endpoint } from '../../http/endpoint.ts';
import { organizationRecord, toOrganizationRecord } from './org.ts';
import { selectOrganization } from './org-store.ts';

/** Rule: ORG-17. */
export const getOrg = endpoint({
  method: 'GET',
  path: '/org',
  tag: 'Organization',
  summary: 'Get the organization',
  policy: { who: 'member', scope: 'org:read' },
  tool: { name: 'get_organization', title: 'Get the organization' },
  response: { 200: organizationRecord },
  async handle({ db }, { caller: { orgId } }) {
    return toOrganizationRecord(await selectOrganization(db.read, orgId));
  },
});
