import { z } from 'zod';
import { second } from '../../base/clock.ts';
import { endpoint, WithHeaders } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { networkOf } from '../../limits/limits.ts';
import { OidcError, oidcRedirectUri } from '../../oidc/oidc.ts';
import { hiddenReason } from '../../outbound/address-guard.ts';
import { flowCookie, flowMs, signInPage } from './oidc-flow.ts';

/** Rules: AUTH-48, AUTH-56. What has to be remembered goes to the browser, sealed; nothing is stored for who only begins. */
export const startOidc = endpoint({
  method: 'GET',
  path: '/userAccount/oidc/start',
  tag: 'Sign-in',
  summary: 'Go to the provider of single sign-on; a browser is sent there and comes back to the sign-in page',
  responseHeaders: { location: 'The provider, or the sign-in page with the problem' },
  policy: { who: 'anyone' },
  boundedBy: 'signInStart',
  query: z.object({
    signIn: id.describe('The sign-in that this is for, as in the address that initAuth returns'),
  }),
  response: { 302: z.undefined() },
  async handle({ oidc, keys, clock, config, limits, metrics, log }, { query: { signIn: signInId }, origin }) {
    await limits.count('signInStart', networkOf(origin.network));
    const client = await oidc.client();
    const fail = (error: string) => new WithHeaders(undefined, { location: signInPage(config.frontendUrl, { error }) });
    if (!client) return fail('not_configured');
    const begunMs = clock.now();
    try {
      const { url, flow } = await client.begin(oidcRedirectUri(config));
      const iat = Math.floor(begunMs / second);
      const { issuer, clientId } = client.settings;
      const remembered = { ...flow, issuer, clientId, signInId, begunMs, tokenType: 'oidc-flow' };
      const sealed = await keys.signInternal({ ...remembered, iat, exp: iat + flowMs / second });
      return new WithHeaders(undefined, { location: url, 'set-cookie': flowCookie(sealed.expose(), config) });
    } catch (error) {
      if (!(error instanceof OidcError)) throw error;
      metrics.countUpstreamFault('oidcFailed');
      log.warn(
        { requestId: origin.requestId, cause: hiddenReason(error) ?? error.message },
        'the provider of single sign-on failed',
      );
      return fail('failed');
    }
  },
});
