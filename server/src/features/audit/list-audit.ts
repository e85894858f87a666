import { z } from 'zod';
import { toAuditEntry } from '../../audit-log/audit-events.ts';
import { selectAuditPage } from '../../audit-log/audit-query.ts';
import { endpoint } from '../../http/endpoint.ts';
import { listQuery, queryNumber } from '../../http/schemas.ts';
import { auditFilter } from './audit-filter.ts';
import { auditCursor, auditRecord, toCursor } from './audit-page.ts';

const limitMax = 200;
const limitDefault = 50;

/** Rules: AUDIT-3, AUDIT-9, AUDIT-12, SCOPE-17. */
export const listAudit = endpoint({
  method: 'GET',
  path: '/audit',
  tag: 'Audit',
  summary: 'List the audit log, newest first: records of the organization, and of the system as a whole',
  policy: { who: 'admin', scope: 'org:admin' },
  costs: 'read',
  tool: {
    name: 'list_audit_records',
    title: 'Read the audit log',
    description:
      'The audit log, newest first, a page at a time (25 by default); continue with cursor: nextCursor of ' +
      'the page before. Narrow it down by actor, action (token.revoked, or token. for all of them), subject and time.',
    query: { limit: '25' },
  },
  query: listQuery({
    ...auditFilter,
    limit: queryNumber({ min: 1, max: limitMax })
      .optional()
      .describe('How many records a page has')
      .meta({ default: limitDefault }),
    cursor: auditCursor.optional().describe('nextCursor of the page before'),
  }),
  response: {
    200: z.object({
      records: z.array(auditRecord),
      nextCursor: z.string().nullable().describe('null: there is no more'),
    }),
  },
  async handle({ db }, { caller: { orgId }, query }) {
    const { limit = limitDefault, cursor = null, ...filter } = query;
    // One more than is returned, to know whether there are more.
    const rows = await selectAuditPage(db.read, { ...filter, orgId }, { before: cursor, limit: limit + 1 });
    const page = rows.slice(0, limit);
    const last = rows.length > limit ? page.at(-1) : undefined;
    const nextCursor = last ? toCursor({ occurredAt: last.occurred_at, sequence: last.sequence }) : null;
    return { records: page.map(toAuditEntry), nextCursor };
  },
});
