import { z } from 'zod';
import { id, queryTime } from '../../http/schemas.ts';

const actionForm = /^[a-z]+(?:-[a-z]+)*\.(?:[a-z]+(?:-[a-z]+)*)?$/;
const actionMax = 100;

/** Filter for records; all of its parts have to match. Rule: AUDIT-12. */
export const auditFilter = {
  actor: id.optional().describe('The id of the user who acted'),
  token: id.optional().describe('The id of the personal access token that acted'),
  client: id.optional().describe('The id of the service client that acted'),
  action: z
    .string()
    .max(actionMax)
    .regex(actionForm, 'must be an action such as token.created, or an area with a dot after it, such as token.')
    .optional()
    .describe('An action, or all of an area, with a dot after it')
    .meta({ examples: ['token.'] }),
  subject: id.optional().describe('The id of the subject'),
  outcome: z.enum(['success', 'failure']).optional(),
  from: queryTime.optional().describe('Only records at or after this time'),
  to: queryTime.optional().describe('Only records before this time'),
};
