import { z } from 'zod';
import { endpoint, WithHeaders } from '../../http/endpoint.ts';
import { networkOf } from '../../limits/limits.ts';
import { OidcError, oidcRedirectUri } from '../../oidc/oidc.ts';
import { backToSignIn, flowOf, readFlowCookie, returnUrl } from './oidc-flow.ts';
import { receiveArrival } from './public.ts';

/** Rules: AUTH-48, AUTH-49, AUTH-55, AUTH-56. */
export const completeOidc = endpoint({
  method: 'GET',
  path: '/userAccount/oidc/callback',
  tag: 'Sign-in',
  summary: 'Return from the provider of single sign-on; redirects the browser to the sign-in page with a ticket',
  responseHeaders: { location: 'The sign-in page, with #oidc=<ticket>&email=… or #error=…' },
  policy: { who: 'anyone', writesBy: 'providerAnswer' },
  boundedBy: 'signInStart',
  headers: z.object({ cookie: z.string().optional() }),
  query: z.looseObject({ error: z.string().optional() }),
  response: { 302: z.undefined() },
  async handle(services, { headers, query, origin }) {
    const { config, keys, oidc, limits, metrics, log } = services;
    await limits.count('signInStart', networkOf(origin.network));
    const client = await oidc.client();
    const kept = await keys.verifyInternal(readFlowCookie(headers.cookie) ?? '');
    const flow = client && flowOf(kept, { settings: client.settings, state: query['state'] });
    const goOn = (outcome: Record<string, string>) =>
      new WithHeaders(undefined, backToSignIn(config, outcome, flow !== null));
    if (!client) return goOn({ error: 'not_configured' });
    if (query.error === 'access_denied') return goOn({ error: 'access_denied' });
    if (!flow) return goOn({ error: 'expired' });
    try {
      const identity = await client.finish(returnUrl(oidcRedirectUri(config), query), flow);
      const { signInId } = flow;
      return goOn(await receiveArrival(services, { settings: client.settings, identity, signInId, origin }));
    } catch (error) {
      if (!(error instanceof OidcError)) throw error;
      metrics.countUpstreamFault('oidcFailed');
      log.warn({ requestId: origin.requestId, cause: error.message }, 'single sign-on failed');
      return goOn({ error: 'failed' });
    }
  },
});
