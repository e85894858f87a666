import { endpoint } from '../../http/endpoint.ts';
import { describeOidcSettings, oidcSettingsResponse } from './public.ts';

/** Rules: AUDIT-4, AUDIT-5, AUTH-48, AUTH-58. */
export const getOidcSettings = endpoint({
  method: 'GET',
  path: '/settings/oidc',
  tag: 'Settings',
  summary: 'Show the provider of single sign-on; the client secret is never shown',
  policy: { who: 'admin', scope: 'org:admin' },
  response: { 200: oidcSettingsResponse },
  handle: (services) => describeOidcSettings(services),
});
