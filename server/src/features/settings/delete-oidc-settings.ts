import type { ForCaller } from '../../access/reauthorization.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { ApiError } from '../../base/errors.ts';
import type { Origin } from '../../base/origin.ts';
import { endpoint } from '../../http/endpoint.ts';
import { messageResponse } from '../../http/schemas.ts';
import type { Services } from '../../services.ts';
import { dependsOn } from '../sign-in/public.ts';
import { auditedOidcSettings } from './audited-settings.ts';
import { decryptOidcSettings } from './public.ts';
import { deleteSetting, selectSetting } from './setting-store.ts';

interface Removal extends ForCaller {
  readonly origin: Origin;
}

/** Deletes the stored settings; returns whether they were still those that the audit record names. */
async function forget(services: Services, { caller, write, origin }: Removal): Promise<boolean> {
  const { db, encryption } = services;
  const { orgId } = caller;
  const earlier = await selectSetting(db.read, 'oidc');
  const stored = earlier === null ? null : await decryptOidcSettings(encryption, earlier);
  return write(async (tx) => {
    if ((await selectSetting(tx, 'oidc')) !== earlier) return false;
    const lacking = services.config.mailServer || (await selectSetting(tx, 'smtp')) !== null ? null : 'otp';
    const isNeeded = !services.config.oidc && (await dependsOn(tx, orgId, { method: 'oidc', lacking }));
    if (isNeeded) throw new ApiError('settingNeeded');
    if (!(await deleteSetting(tx, 'oidc'))) throw new ApiError('notFound');
    const changes = changesBetween(auditedOidcSettings(stored), null);
    const record = { action: 'settings.oidc-removed', orgId, actor: caller, subjectId: null, origin } as const;
    await appendAudit(tx, services, { ...record, changes });
    return true;
  });
}

/** Rules: AUDIT-4, AUTH-57. */
export const deleteOidcSettings = endpoint({
  method: 'DELETE',
  path: '/settings/oidc',
  tag: 'Settings',
  summary: 'Forget the stored provider of single sign-on',
  errors: [404, 409],
  policy: { who: 'admin', scope: 'org:admin' },
  response: { 200: messageResponse },
  async handle(services, { caller, write, origin }) {
    let isDone = false;
    while (!isDone) isDone = await forget(services, { caller, write, origin });
    return { message: 'Single sign-on settings removed successfully' };
  },
});
