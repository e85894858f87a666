import { endpoint } from '../../http/endpoint.ts';
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
