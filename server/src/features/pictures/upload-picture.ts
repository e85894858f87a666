import type { ForCaller } from '../../access/reauthorization.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import type { Origin } from '../../base/origin.ts';
import { endpoint } from '../../http/endpoint.ts';
import type { Services } from '../../services.ts';
import { auditedPicture, pictureBody, pictureResponse, pictureType } from './picture.ts';
import { selectPicture, upsertPicture } from './picture-store.ts';

interface Upload extends ForCaller {
  readonly bytes: Uint8Array;
  readonly ownerId: string;
  readonly origin: Origin;
}

const response = { 201: pictureResponse };

/** Stores what becomes of an uploaded picture, in place of the one before. Rules: PICTURE-8 to PICTURE-17. */
async function store(services: Services, { caller, write, bytes, ownerId, origin }: Upload): Promise<Uint8Array> {
  const { orgId } = caller;
  await services.limits.count('upload', caller.userId);
  const picture = await services.pictures.compress(bytes, caller.userId);
  const content = picture.toString('base64');
  await write(async (tx) => {
    const updated_at = services.clock.now();
    const before = await selectPicture(tx, ownerId);
    await upsertPicture(tx, { owner_id: ownerId, org_id: orgId, content, mime_type: pictureType, updated_at });
    const details = { bytes: picture.length };
    const changes = { picture: { before: auditedPicture(before), after: auditedPicture(picture) } };
    const record = { action: 'picture.stored', orgId, actor: caller, subjectId: ownerId, origin } as const;
    await appendAudit(tx, services, { ...record, details, changes });
  });
  return picture;
}

/** Rule: PICTURE-1. */
export const uploadDisplayPicture = endpoint({
  method: 'PUT',
  path: '/users/dp',
  tag: 'Pictures',
  summary: "Set the caller's own picture: PNG, JPEG, WebP or GIF of at most 1 MB, kept as JPEG under 100 KB",
  policy: { who: 'member', scope: 'user:write' },
  body: pictureBody,
  response,
  handle: (services, { caller, write, body: bytes, origin }) =>
    store(services, { caller, write, bytes, ownerId: caller.userId, origin }),
});

/** Rule: PICTURE-5. */
export const uploadLogo = endpoint({
  method: 'PUT',
  path: '/org/logo',
  tag: 'Pictures',
  summary: "Set the organization's logo: PNG, JPEG, WebP or GIF of at most 1 MB, kept as JPEG under 100 KB",
  policy: { who: 'admin', scope: 'org:write' },
  body: pictureBody,
  response,
  handle: (services, { caller, write, body: bytes, origin }) =>
    store(services, { caller, write, bytes, ownerId: caller.orgId, origin }),
});
