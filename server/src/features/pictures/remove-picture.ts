import { z } from 'zod';
import type { ForCaller } from '../../access/reauthorization.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import type { Origin } from '../../base/origin.ts';
import { endpoint } from '../../http/endpoint.ts';
import { idResponse } from '../../http/schemas.ts';
import type { Services } from '../../services.ts';
import { auditedPicture } from './picture.ts';
import { clearPicture, selectPicture } from './picture-store.ts';

interface Removal extends ForCaller {
  readonly ownerId: string;
  readonly origin: Origin;
}

/** Takes a picture away; where there is none, nothing happens. Rules: PICTURE-4, PICTURE-7. */
async function remove(services: Services, { caller, write, ownerId, origin }: Removal): Promise<void> {
  await write(async (tx) => {
    const before = await selectPicture(tx, ownerId);
    if (!(await clearPicture(tx, ownerId, services.clock.now()))) return;
    const record = { action: 'picture.removed', orgId: caller.orgId, actor: caller, subjectId: ownerId } as const;
    const changes = { picture: { before: auditedPicture(before), after: null } };
    await appendAudit(tx, services, { ...record, origin, changes });
  });
}

/** Rule: PICTURE-4. */
export const removeDisplayPicture = endpoint({
  method: 'DELETE',
  path: '/users/dp',
  tag: 'Pictures',
  summary: "Remove the caller's own picture",
  policy: { who: 'member', scope: 'user:write' },
  response: { 200: z.object({ userId: idResponse, orgId: idResponse, pic: z.null(), mimeType: z.null() }) },
  async handle(services, { caller, write, origin }) {
    const { userId, orgId } = caller;
    await remove(services, { caller, write, ownerId: userId, origin });
    return { userId, orgId, pic: null, mimeType: null };
  },
});

/** Rule: PICTURE-7. */
export const removeLogo = endpoint({
  method: 'DELETE',
  path: '/org/logo',
  tag: 'Pictures',
  summary: "Remove the organization's logo",
  policy: { who: 'admin', scope: 'org:write' },
  response: { 200: z.object({ orgId: idResponse, logo: z.null(), logoUrl: z.null(), mimeType: z.null() }) },
  async handle(services, { caller, write, origin }) {
    const { orgId } = caller;
    await remove(services, { caller, write, ownerId: orgId, origin });
    return { orgId, logo: null, logoUrl: null, mimeType: null };
  },
});
