import { appendAudit } from '../../audit/audit-log.ts';
import { RefusedError } from '../../errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { messageAnswer } from '../../http/schemas.ts';
import { dependsOn } from '../sign-in/contract.ts';
import { deleteSetting, selectSetting } from './setting-store.ts';

/** Rules: AUDIT-4, AUTH-57. */
export const deleteOidcSettings = endpoint({
  method: 'DELETE',
  path: '/settings/oidc',
  tag: 'Settings',
  summary: 'Forget the stored provider of single sign-on',
  policy: { who: 'admin', scope: 'org:admin' },
  response: { 200: messageAnswer },
  async handle(services, { caller, origin }) {
    const { orgId } = caller;
    await services.db.transaction(async (tx) => {
      await services.confirm(tx, caller, 'admin');
      const lacking = services.config.mailServer || (await selectSetting(tx, 'smtp')) !== null ? null : 'otp';
      const isNeeded = !services.config.oidc && (await dependsOn(tx, orgId, { method: 'oidc', lacking }));
      if (isNeeded) throw new RefusedError('settingNeeded');
      if (!(await deleteSetting(tx, 'oidc'))) throw new RefusedError('notFound');
      const record = { action: 'settings.oidc-removed', orgId, actor: caller, subjectId: null, origin } as const;
      await appendAudit(tx, services, record);
    });
    return { message: 'Single sign-on settings removed successfully' };
  },
});
