import { z } from 'zod';
import { exportFormats, exportAudit as exportRecords } from '../../audit-log/export-audit.ts';
import { endpoint } from '../../http/endpoint.ts';
import { StreamedText, streamResponse } from '../../http/media.ts';
import { listQuery } from '../../http/schemas.ts';
import { auditFilter } from './audit-filter.ts';

const mediaTypes = { jsonl: 'application/jsonl', csv: 'text/csv' } as const;

/** Rules: AUDIT-3, AUDIT-13, SCOPE-17. */
export const exportAudit = endpoint({
  method: 'GET',
  path: '/audit/export',
  tag: 'Audit',
  summary: 'Export the audit log, oldest first, with all that is needed to verify it; sent as it is read',
  policy: { who: 'admin', scope: 'org:admin' },
  costs: 'read',
  query: listQuery({
    ...auditFilter,
    format: z.enum(exportFormats).optional().describe('JSON Lines, or CSV (RFC 4180)').meta({ default: 'jsonl' }),
  }),
  response: { 200: streamResponse(mediaTypes.jsonl, mediaTypes.csv) },
  async handle({ db }, { caller: { orgId }, query }) {
    const { format = 'jsonl', ...filter } = query;
    const input = { filter: { ...filter, orgId }, format };
    return new StreamedText(mediaTypes[format], ({ stillAdmitted }) =>
      // Who may no longer read the log gets no more of it.
      exportRecords(db.read, input, stillAdmitted),
    );
  },
});
