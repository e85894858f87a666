import type { z } from 'zod';
import type { SessionPrincipal } from '../../access/principal.ts';
import type { ForCaller } from '../../access/reauthorization.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import type { Origin } from '../../base/origin.ts';
import { endpoint } from '../../http/endpoint.ts';
import { requireOutbound } from '../../outbound/require-outbound.ts';
import type { Services } from '../../services.ts';
import { auditedMailSettings } from './audited-settings.ts';
import { earlierMailSettingsResponse, toEarlierMailSettings } from './earlier-settings-actions.ts';
import { keepsSecret, type MailSettingsBody, mailSettingsBody, settingsOf } from './mail-settings-actions.ts';
import { decryptMailSettings, describeMailSettings, encryptMailSettings, mailSettingsResponse } from './public.ts';
import { storeSetting } from './setting-actions.ts';
import { selectSetting } from './setting-store.ts';

/** As earlier clients send them. Rule: FIT-79. */
const earlierBody = mailSettingsBody.omit({ from: true }).extend({ fromEmail: mailSettingsBody.shape.from });

interface Input extends ForCaller<SessionPrincipal> {
  readonly body: MailSettingsBody;
  readonly origin: Origin;
}

async function set(services: Services, input: Input): Promise<z.output<typeof mailSettingsResponse>> {
  const { caller, write, body: wanted, origin } = input;
  // Mail goes to public addresses with and without TLS.
  requireOutbound('body.host', { protocol: 'https:', hostname: wanted.host }, services.config.outboundNetworks);
  if (wanted.oauth2) {
    requireOutbound('body.oauth2.tokenUrl', new URL(wanted.oauth2.tokenUrl), services.config.outboundNetworks);
  }
  const { db, encryption, clock } = services;
  const { orgId, userId } = caller;
  const earlier = await selectSetting(db.read, 'smtp');
  const stored = earlier === null ? null : await decryptMailSettings(encryption, earlier);
  const settings = settingsOf(wanted, stored);
  const content = await encryptMailSettings(encryption, settings);
  const isDone = await write(async (tx) => {
    const isSecretKept = keepsSecret(settings, stored);
    const setting = { name: 'smtp', content, by: userId, nowMs: clock.now() } as const;
    if (!(await storeSetting(tx, { ...setting, earlier, isSecretKept }))) return false;
    const changes = changesBetween(auditedMailSettings(stored), auditedMailSettings(settings));
    const record = { action: 'settings.mail-set', orgId, actor: caller, subjectId: null, origin } as const;
    await appendAudit(tx, services, { ...record, changes });
    return true;
  });
  return isDone ? describeMailSettings(services) : set(services, input);
}

/**
 * Rules: AUDIT-4, AUDIT-6, CONFIG-40, FIT-25, MAIL-8, MAIL-9, SCOPE-27. Takes a session: control over the mail server gives
 * access to all mail, password links included, which no scope of a token grants.
 */
export const setMailSettings = endpoint({
  method: 'PUT',
  path: '/settings/smtp',
  tag: 'Settings',
  summary: 'Set the mail server; takes effect at once. SMTP_URL of the configuration takes precedence',
  policy: { who: 'admin', sessionOnly: true },
  body: mailSettingsBody,
  response: { 200: mailSettingsResponse },
  handle: set,
});

/** Rule: FIT-79. */
export const setEarlierMailSettings = endpoint({
  method: 'POST',
  path: '/configurationManager/smtpConfig',
  tag: 'Settings',
  summary: 'The same as PUT /settings/smtp, in the form of earlier clients',
  policy: { who: 'admin', sessionOnly: true },
  body: earlierBody,
  response: { 200: earlierMailSettingsResponse },
  async handle(services, { body: { fromEmail: from, ...given }, ...input }) {
    return toEarlierMailSettings(await set(services, { ...input, body: { ...given, from } }));
  },
});
