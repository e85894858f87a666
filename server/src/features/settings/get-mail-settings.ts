import { endpoint } from '../../http/endpoint.ts';
import { earlierMailSettingsResponse, toEarlierMailSettings } from './earlier-settings-actions.ts';
import { describeMailSettings, mailSettingsResponse } from './public.ts';

/** Rules: AUDIT-4, AUDIT-5, MAIL-1. */
export const getMailSettings = endpoint({
  method: 'GET',
  path: '/settings/smtp',
  tag: 'Settings',
  summary: 'Show the mail server; the password is never shown',
  policy: { who: 'admin', scope: 'org:admin' },
  response: { 200: mailSettingsResponse },
  handle: (services) => describeMailSettings(services),
});

/** Rule: FIT-79. */
export const getEarlierMailSettings = endpoint({
  method: 'GET',
  path: '/configurationManager/smtpConfig',
  tag: 'Settings',
  summary: 'The same as GET /settings/smtp, in the form of earlier clients',
  policy: { who: 'admin', scope: 'org:admin' },
  response: { 200: earlierMailSettingsResponse },
  handle: async (services) => toEarlierMailSettings(await describeMailSettings(services)),
});
