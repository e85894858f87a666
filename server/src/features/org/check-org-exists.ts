import { z } from 'zod';
import { selectOrganizationExists } from '../../db/members/organization.ts';
import { endpoint } from '../../http/endpoint.ts';

/** Rules: ORG-16, ORG-26. */
export const checkOrgExists = endpoint({
  method: 'GET',
  path: '/org/exists',
  operationId: 'checkOrganizationExists',
  tag: 'Organization',
  summary: 'Whether this system has its organization',
  policy: { who: 'anyone' },
  response: { 200: z.object({ exists: z.boolean() }) },
  async handle({ db }) {
    return { exists: await selectOrganizationExists(db.read) };
  },
});
