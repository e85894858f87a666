import { z } from 'zod';
import { selectActiveOrganization } from '../../db/members/organization.ts';
import { endpoint, WithHeaders } from '../../http/endpoint.ts';
import { networkOf } from '../../limits/limits.ts';
import { authProviders } from '../../oidc/oidc.ts';
import { emailAddress } from '../../text/email-address.ts';
import { firstMethods } from './public.ts';
import { signInMs } from './steps.ts';

/** Rules: AUTH-3 to AUTH-5. Nothing is stored at this point: the state travels in the header. */
export const startSignIn = endpoint({
  method: 'POST',
  path: '/userAccount/initAuth',
  tag: 'Sign-in',
  summary: 'Begin to sign in; the response has the header x-session-token for the next call',
  responseHeaders: { 'x-session-token': 'The value that the next call has to send back, valid for an hour' },
  policy: { who: 'anyone' },
  boundedBy: 'signInStart',
  body: z
    .object({
      email: emailAddress
        .optional()
        .describe(
          'The address of the user who signs in; left out here, it has to be sent to authenticate. All get the same response',
        ),
    })
    .optional(),
  response: {
    200: z.object({
      currentStep: z.int(),
      allowedMethods: z.array(z.string()),
      message: z.string(),
      authProviders: z.record(z.string(), z.unknown()),
      jitEnabled: z.boolean(),
    }),
  },
  async handle({ db, clock, keys, newId, limits, config }, { body, origin }) {
    await limits.count('signInStart', networkOf(origin.network));
    const organization = await selectActiveOrganization(db.read);
    const allowedMethods = [...(await firstMethods(db.read, organization?.id))];
    const id = newId();
    const iat = Math.floor(clock.now() / 1_000);
    const token = await keys.signInternal({
      tokenType: 'sign-in',
      jti: id,
      iat,
      exp: iat + signInMs / 1_000,
      ...(body?.email === undefined ? {} : { email: body.email }),
    });
    const response = {
      currentStep: 0,
      allowedMethods,
      message: 'Sign-in begun',
      authProviders: authProviders(config, allowedMethods, id),
      jitEnabled: false,
    };
    return new WithHeaders(response, { 'x-session-token': token.expose() });
  },
});
