import { appendAudit } from '../../audit/audit-log.ts';
import { RefusedError } from '../../errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { messageAnswer } from '../../http/schemas.ts';
import { dependsOn } from '../sign-in/contract.ts';
import { deleteSetting, selectSetting } from './setting-store.ts';

/** Rules: AUDIT-4, AUTH-57, MAIL-9. */
export const deleteMailSettings = endpoint({
  method: 'DELETE',
  path: '/settings/smtp',
  tag: 'Settings',
  summary: 'Forget the stored mail server',
  policy: { who: 'admin', scope: 'org:admin' },
  response: { 200: messageAnswer },
  async handle(services, { caller, origin }) {
    const { orgId } = caller;
    await services.db.transaction(async (tx) => {
      await services.confirm(tx, caller, 'admin');
      const lacking = services.config.oidc || (await selectSetting(tx, 'oidc')) !== null ? null : 'oidc';
      const isNeeded = !services.config.mailServer && (await dependsOn(tx, orgId, { method: 'otp', lacking }));
      if (isNeeded) throw new RefusedError('settingNeeded');
      if (!(await deleteSetting(tx, 'smtp'))) throw new RefusedError('notFound');
      await appendAudit(tx, services, {
        action: 'settings.mail-removed',
        orgId,
        actor: caller,
        subjectId: null,
        origin,
      });
    });
    return { message: 'Mail settings removed successfully' };
  },
});
