import type { ForCaller } from '../../access/reauthorization.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { ApiError } from '../../base/errors.ts';
import type { Origin } from '../../base/origin.ts';
import { endpoint } from '../../http/endpoint.ts';
import { messageResponse } from '../../http/schemas.ts';
import type { Services } from '../../services.ts';
import { dependsOn } from '../sign-in/public.ts';
import { auditedMailSettings } from './audited-settings.ts';
import { decryptMailSettings } from './public.ts';
import { deleteSetting, selectSetting } from './setting-store.ts';

interface Removal extends ForCaller {
  readonly origin: Origin;
}

/** Deletes the stored settings; returns whether they were still those that the audit record names. */
async function forget(services: Services, { caller, write, origin }: Removal): Promise<boolean> {
  const { db, encryption } = services;
  const { orgId } = caller;
  const earlier = await selectSetting(db.read, 'smtp');
  const stored = earlier === null ? null : await decryptMailSettings(encryption, earlier);
  return write(async (tx) => {
    if ((await selectSetting(tx, 'smtp')) !== earlier) return false;
    const lacking = services.config.oidc || (await selectSetting(tx, 'oidc')) !== null ? null : 'oidc';
    const isNeeded = !services.config.mailServer && (await dependsOn(tx, orgId, { method: 'otp', lacking }));
    if (isNeeded) throw new ApiError('settingNeeded');
    if (!(await deleteSetting(tx, 'smtp'))) throw new ApiError('notFound');
    const changes = changesBetween(auditedMailSettings(stored), null);
    const record = { action: 'settings.mail-removed', orgId, actor: caller, subjectId: null, origin } as const;
    await appendAudit(tx, services, { ...record, changes });
    return true;
  });
}

/** Rules: AUDIT-4, AUTH-57, MAIL-9. */
export const deleteMailSettings = endpoint({
  method: 'DELETE',
  path: '/settings/smtp',
  tag: 'Settings',
  summary: 'Forget the stored mail server',
  errors: [404],
  policy: { who: 'admin', scope: 'org:admin' },
  response: { 200: messageResponse },
  async handle(services, { caller, write, origin }) {
    let isDone = false;
    while (!isDone) isDone = await forget(services, { caller, write, origin });
    return { message: 'Mail settings removed successfully' };
  },
});
