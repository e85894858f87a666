import type { SessionPrincipal } from '../../access/principal.ts';
import type { ForCaller } from '../../access/reauthorization.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { ApiError } from '../../base/errors.ts';
import type { Origin } from '../../base/origin.ts';
import { endpoint } from '../../http/endpoint.ts';
import type { Services } from '../../services.ts';
import { describeMailSettings, describeOidcSettings, mailSettingsResponse, oidcSettingsResponse } from './public.ts';
import { updateConfirmed } from './setting-store.ts';

interface Confirming extends ForCaller<SessionPrincipal> {
  readonly origin: Origin;
}

const actions = { smtp: 'settings.mail-confirmed', oidc: 'settings.oidc-confirmed' } as const;

/** Notes that the caller answers for settings as they are. Throws `notFound` where none are stored. */
async function reauthorize(
  services: Services,
  name: keyof typeof actions,
  { caller, write, origin }: Confirming,
): Promise<void> {
  await write(async (tx) => {
    if (!(await updateConfirmed(tx, name, caller.userId))) throw new ApiError('notFound');
    const record = { action: actions[name], orgId: caller.orgId, actor: caller, subjectId: null, origin } as const;
    await appendAudit(tx, services, record);
  });
}

/** Rule: LEAVER-10. */
export const confirmMailSettings = endpoint({
  method: 'POST',
  path: '/settings/smtp/confirm',
  tag: 'Settings',
  summary:
    'Confirm the stored mail settings as they are, so that they need no review when the administrator who set them leaves',
  errors: [404],
  policy: { who: 'admin', sessionOnly: true },
  response: { 200: mailSettingsResponse },
  async handle(services, { caller, write, origin }) {
    await reauthorize(services, 'smtp', { caller, write, origin });
    return describeMailSettings(services);
  },
});

/** Rule: LEAVER-10. */
export const confirmOidcSettings = endpoint({
  method: 'POST',
  path: '/settings/oidc/confirm',
  tag: 'Settings',
  summary:
    'Confirm the stored provider of single sign-on as it is, so that it needs no review when the administrator who set it leaves',
  errors: [404],
  policy: { who: 'admin', sessionOnly: true },
  response: { 200: oidcSettingsResponse },
  async handle(services, { caller, write, origin }) {
    await reauthorize(services, 'oidc', { caller, write, origin });
    return describeOidcSettings(services);
  },
});
