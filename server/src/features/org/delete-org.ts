import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { toTimestamp } from '../../base/clock.ts';
import { endpoint } from '../../http/endpoint.ts';
import { idResponse, timestamp } from '../../http/schemas.ts';
import { appendEvents } from '../../outbox/outbox.ts';
import { deletedOrganization } from './org.ts';
import { selectOrganization, updateOrganization } from './org-store.ts';

/** Rules: ORG-25, ORG-26. */
export const deleteOrg = endpoint({
  method: 'DELETE',
  path: '/org',
  operationId: 'deleteOrganization',
  tag: 'Organization',
  summary: 'Delete the organization: no one can sign in any more, and only the operator can restore it',
  policy: { who: 'admin', scope: 'org:admin' },
  response: {
    200: z.object({
      message: z.string(),
      data: z.object({ _id: idResponse, isDeleted: z.boolean(), deletedByUser: idResponse, updatedAt: timestamp }),
    }),
  },
  async handle(services, { caller, write, origin }) {
    const { orgId, userId } = caller;
    const nowMs = services.clock.now();
    await write(async (tx) => {
      const organization = await selectOrganization(tx, orgId);
      await updateOrganization(tx, deletedOrganization(organization, userId, nowMs));
      await appendEvents(tx, services, [{ eventType: 'orgDeleted', payload: { orgId } }]);
      const changes = { isDeleted: { before: false, after: true } };
      const record = { action: 'org.deleted', orgId, actor: caller, subjectId: orgId, origin, changes } as const;
      await appendAudit(tx, services, record);
    });
    return {
      message: 'Organization deleted successfully',
      data: { _id: orgId, isDeleted: true, deletedByUser: userId, updatedAt: toTimestamp(nowMs) },
    };
  },
});
