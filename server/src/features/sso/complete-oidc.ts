import { z } from 'zod';
import { endpoint, WithHeaders } from '../../http/endpoint.ts';
import { networkOf } from '../../limits/limits.ts';
import { OidcError, oidcRedirectUri } from '../../oidc/oidc.ts';
import { cleanProviderText } from '../../oidc/provider-text.ts';
import { hiddenReason } from '../../outbound/address-guard.ts';
import { backToSignIn, flowOf, type OidcProblem, readFlowCookie, returnUrl } from './oidc-flow.ts';
import { receiveArrival } from './public.ts';

/** Returns the error that the browser brought from the provider, in the provider's own words. */
function errorOf(query: Readonly<Record<string, unknown>>): string {
  const parts = [query['error'], query['error_description']].filter((part) => typeof part === 'string');
  return cleanProviderText(parts.join(': '));
}

/** Rules: AUTH-48, AUTH-49, AUTH-55, AUTH-56, AUTH-74, FIT-4. */
export const completeOidc = endpoint({
  method: 'GET',
  path: '/userAccount/oidc/callback',
  tag: 'Sign-in',
  summary: 'Return from the provider of single sign-on; redirects the browser to the sign-in page with a ticket',
  responseHeaders: { location: 'The sign-in page, with #oidc=<ticket>&email=… or #error=…' },
  errors: [401],
  policy: { who: 'anyone', writesBy: 'providerAnswer' },
  boundedBy: 'signInStart',
  headers: z.object({ cookie: z.string().optional() }),
  query: z.looseObject({ error: z.string().optional() }),
  response: { 302: z.undefined() },
  async handle(services, { headers, query, origin }) {
    const { config, keys, oidc, limits, metrics, log } = services;
    await limits.count('signInStart', networkOf(origin.network));
    const client = await oidc.client();
    const cookie = readFlowCookie(headers.cookie);
    const read =
      client &&
      flowOf(await keys.verifyInternal(cookie ?? ''), { cookie, settings: client.settings, state: query['state'] });
    const goOn = (outcome: Record<string, string>) =>
      new WithHeaders(undefined, backToSignIn(config, outcome, Boolean(read?.flow)));
    const refuse = (error: OidcProblem, cause: string) => {
      log.warn({ requestId: origin.requestId, error, cause }, 'single sign-on refused');
      return goOn({ error });
    };
    if (!client || !read) return refuse('not_configured', 'no provider is configured');
    if (query.error === 'access_denied') {
      // Without the cookie anyone may have written the text.
      return refuse('access_denied', read.flow ? `the provider answers ${errorOf(query)}` : read.problem);
    }
    if (!read.flow) return refuse('expired', read.problem);
    try {
      const identity = await client.finish(returnUrl(oidcRedirectUri(config), query), read.flow);
      const { signInId, begunMs } = read.flow;
      const arrival = { settings: client.settings, identity, signInId, begunMs, origin };
      const outcome = await receiveArrival(services, arrival);
      return 'cause' in outcome ? refuse(outcome.error, outcome.cause) : goOn(outcome);
    } catch (error) {
      if (!(error instanceof OidcError)) throw error;
      metrics.countUpstreamFault('oidcFailed');
      return refuse('failed', hiddenReason(error) ?? error.message);
    }
  },
});
