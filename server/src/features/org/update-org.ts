import type { ForCaller } from '../../access/reauthorization.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { toTimestamp } from '../../base/clock.ts';
import type { Origin } from '../../base/origin.ts';
import { endpoint } from '../../http/endpoint.ts';
import { appendEvents } from '../../outbox/outbox.ts';
import type { Services } from '../../services.ts';
import { auditedOrganization } from './org.ts';
import { applyOrgChange, type OrgChange, orgChangeBody, orgChangeResponse } from './org-change.ts';
import { selectOrganization, updateOrganization } from './org-store.ts';

interface Edit extends ForCaller {
  readonly body: OrgChange | undefined;
  readonly origin: Origin;
}

const body = orgChangeBody.optional();
const response = { 200: orgChangeResponse };

/** Changes the given fields, and writes the event; with no fields given, nothing happens. Rules: ORG-21, ORG-22. */
async function edit(services: Services, { caller, write, body: change = {}, origin }: Edit) {
  const { orgId } = caller;
  const fields = Object.keys(change);
  const organization = await write(async (tx) => {
    const before = await selectOrganization(tx, orgId);
    if (fields.length === 0) return before;
    const after = applyOrgChange(before, change, services.clock.now());
    await updateOrganization(tx, after);
    const name = after.registered_name === null ? {} : { registeredName: after.registered_name };
    await appendEvents(tx, services, [{ eventType: 'orgUpdated', payload: { orgId, ...name } }]);
    const record = { action: 'org.updated', orgId, actor: caller, subjectId: orgId, origin } as const;
    const changes = changesBetween(auditedOrganization(before), auditedOrganization(after));
    await appendAudit(tx, services, { ...record, details: { fields }, changes });
    return after;
  });
  return {
    message: 'Organization updated successfully',
    data: { _id: orgId, ...change, updatedAt: toTimestamp(organization.updated_at) },
  };
}

/** Rules: ORG-20 to ORG-22, ORG-24. */
export const updateOrg = endpoint({
  method: 'PATCH',
  path: '/org',
  tag: 'Organization',
  summary: 'Change the given fields of the organization',
  policy: { who: 'admin', scope: 'org:write' },
  tool: { name: 'update_organization', title: 'Change the organization' },
  body,
  response,
  handle: edit,
});

/** Rule: ORG-23. */
export const replaceOrg = endpoint({
  method: 'PUT',
  path: '/org',
  operationId: 'replaceOrganization',
  tag: 'Organization',
  summary: 'The same as PATCH: change the given fields of the organization',
  policy: { who: 'admin', scope: 'org:write' },
  body,
  response,
  handle: edit,
});
