import { z } from 'zod';
import { networkOf } from '../../access/limits.ts';
import { selectActiveOrganization } from '../../db/organization.ts';
import { endpoint, WithHeaders } from '../../http/endpoint.ts';
import { emailAddress } from '../../text/email-address.ts';
import { defaultSteps, signInMs } from './session.ts';
import { selectSteps } from './sign-in-store.ts';

/** Rules: AUTH-3 to AUTH-5. Nothing is stored for somebody who only begins: what is known travels in the header. */
export const startSignIn = endpoint({
  method: 'POST',
  path: '/userAccount/initAuth',
  tag: 'Sign-in',
  summary: 'Begin to sign in; the answer has the header x-session-token for the next call',
  answerHeaders: { 'x-session-token': 'What the next call has to send back, good for an hour' },
  policy: { who: 'anyone' },
  body: z
    .object({
      email: emailAddress
        .optional()
        .describe(
          'The address of whoever signs in; left out here, it has to be sent to authenticate. All get the same answer',
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
  async handle({ db, clock, keys, newId, limits }, { body, origin }) {
    limits.count('signInStart', networkOf(origin.network));
    const organization = await selectActiveOrganization(db.read);
    const steps = organization ? await selectSteps(db.read, organization.id) : defaultSteps;
    const iat = Math.floor(clock.now() / 1_000);
    const token = await keys.seal({
      tokenType: 'sign-in',
      jti: newId(),
      iat,
      exp: iat + signInMs / 1_000,
      ...(body?.email === undefined ? {} : { email: body.email }),
    });
    const answer = {
      currentStep: 0,
      allowedMethods: steps[0]?.allowedMethods.map(({ type }) => type) ?? [],
      message: 'Sign-in begun',
      authProviders: {},
      jitEnabled: false,
    };
    return new WithHeaders(answer, { 'x-session-token': token });
  },
});
